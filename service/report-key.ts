/**
 * A key that signs price reports after its own checks; used by signer processes and by keepers that sign themselves.
 */
import { toHex } from '../domain/hex.ts'
import type { Reading } from '../domain/prices/aggregate.ts'
import { type FeedId, type OracleDomain, reportPreimage } from '../domain/prices/report-hash.ts'
import {
  type LastSigned,
  type SigningRefusal,
  type SigningRules,
  signingRefusal,
} from '../domain/prices/signing.ts'
import type { Address, Millis } from '../domain/units.ts'
import type { Clock } from './clock.ts'
import { keccak } from './crypto.ts'
import type { KeySource } from './keys/key-source.ts'

export interface SigningRequest {
  readonly feedId: FeedId
  readonly reading: Reading
}

export type SigningAnswer = { readonly signature: string } | { readonly refusal: SigningRefusal }

export interface ReportKey {
  readonly address: Address
  /** Signs the requests; answers are in request order. Rejects if the key's source fails; then no report is signed. */
  sign(requests: readonly SigningRequest[]): Promise<SigningAnswer[]>
}

export interface ReportKeyOptions {
  readonly key: KeySource
  readonly domain: OracleDomain
  /** Signing rules of a feed; null if the key does not sign this feed. */
  readonly rulesOf: (feedId: FeedId) => SigningRules | null
  readonly clock: Clock
  /**
   * The key signs only reports with later times.
   * Signed prices are kept in memory only, so a restarted process starts with its current time plus the
   * largest lead of a report.
   */
  readonly after: Millis
}

export function createReportKey({ key, domain, rulesOf, clock, after }: ReportKeyOptions): ReportKey {
  const preimageOf = reportPreimage(domain, keccak)
  const signed = new Map<FeedId, LastSigned>()

  /** Decides synchronously, so that overlapping requests are judged in order. */
  function answer({ feedId, reading }: SigningRequest): SigningAnswer | Promise<SigningAnswer> {
    const rules = rulesOf(feedId)
    if (rules === null) return { refusal: 'UNKNOWN_FEED' }
    const last = signed.get(feedId) ?? { price: null, observedAt: after }
    const refusal = signingRefusal(reading, last, rules, clock.now())
    if (refusal !== null) return { refusal }
    // Stored before signing: a failure in between must not let the key sign a second price for this time.
    signed.set(feedId, reading)
    return key.sign(preimageOf(feedId, reading).slice()).then((bytes) => ({ signature: toHex(bytes) }))
  }

  return {
    address: key.address,
    sign: (requests) => Promise.all(requests.map(answer)),
  }
}
