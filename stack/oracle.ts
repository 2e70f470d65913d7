/** Signs price reports with the key of the local oracle: for tools and tests that publish prices by themselves. */
import { getBytes } from 'ethers'
import { toHex } from '../domain/hex.ts'
import { type FeedId, reportHasher } from '../domain/prices/report-hash.ts'
import type { OracleReport } from '../domain/settlement/settlement.ts'
import type { Address, Millis, Price } from '../domain/units.ts'
import { keccak, sign } from '../service/crypto.ts'

export interface ReportSigner {
  sign(feedId: string, price: Price, observedAt: Millis): OracleReport
}

export interface SignerDomain {
  readonly chainId: number
  /** The SignedPriceOracle. */
  readonly address: string
}

/** The local stack has one signer. With several, the signatures are concatenated in ascending order of address. */
export function createReportSigner(privateKey: string, { chainId, address }: SignerDomain): ReportSigner {
  const key = getBytes(privateKey)
  const domain = { chainId: BigInt(chainId), oracle: address.toLowerCase() as Address }
  const digestOf = reportHasher(domain, keccak)
  return {
    sign(feedId, price, observedAt) {
      const digest = digestOf(feedId as FeedId, { price, observedAt })
      return { price, observedAt, signatures: toHex(sign(digest, key)) }
    },
  }
}
