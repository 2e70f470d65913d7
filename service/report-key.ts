/** One key that signs price reports after checks of its own: of a signer process, or of a keeper that signs by itself. */
import { toHex, writeHex } from '../domain/hex.ts'
import type { Reading } from '../domain/prices/aggregate.ts'
import { type FeedId, type OracleDomain, reportHasher } from '../domain/prices/report-hash.ts'
import {
  type LastSigned,
  type SigningRefusal,
  type SigningRules,
  signingRefusal,
} from '../domain/prices/signing.ts'
import type { Address, Millis } from '../domain/units.ts'
import type { Clock } from './clock.ts'
import { addressOf, keccak, sign } from './crypto.ts'

export interface SigningRequest {
  readonly feedId: FeedId
  readonly reading: Reading
}

export type SigningAnswer = { readonly signature: string } | { readonly refusal: SigningRefusal }

export interface ReportKey {
  readonly address: Address
  /** The answers in the order of the requests. */
  sign(requests: readonly SigningRequest[]): SigningAnswer[]
}

export interface ReportKeyOptions {
  readonly privateKey: string
  readonly domain: OracleDomain
  /** Null for a feed that the key does not sign. */
  readonly rulesOf: (feedId: FeedId) => SigningRules | null
  readonly clock: Clock
  /**
   * The key signs only times after this one. It remembers prices only as long as its process lives: a process that may have signed
   * before it was restarted starts with its own time plus the time by which a report may be ahead.
   */
  readonly after: Millis
}

const KEY_BYTES = 32

export function createReportKey({ privateKey, domain, rulesOf, clock, after }: ReportKeyOptions): ReportKey {
  const key = new Uint8Array(KEY_BYTES)
  writeHex(privateKey, key, 0)
  const digestOf = reportHasher(domain, keccak)
  const signed = new Map<FeedId, LastSigned>()

  function answer({ feedId, reading }: SigningRequest): SigningAnswer {
    const rules = rulesOf(feedId)
    if (rules === null) return { refusal: 'UNKNOWN_FEED' }
    const last = signed.get(feedId) ?? { price: null, observedAt: after }
    const refusal = signingRefusal(reading, last, rules, clock.now())
    if (refusal !== null) return { refusal }
    // Remembered before it is signed: no failure in between lets the key sign a second price for this time.
    signed.set(feedId, reading)
    return { signature: toHex(sign(digestOf(feedId, reading), key)) }
  }

  return {
    address: toHex(addressOf(key)) as Address,
    sign: (requests) => requests.map(answer),
  }
}
