/** Checks that a report signer runs on its own before it signs. */
import { abs, type Millis } from '../units.ts'
import type { Reading } from './aggregate.ts'
import type { ValueRange } from './feed.ts'
import { allowedMove, type MoveRules, type UsedReport } from './report.ts'

export interface SigningRules {
  readonly range: ValueRange
  /** Maximum age, by the signer's clock. */
  readonly maxAge: Millis
  readonly maxAhead: Millis
  /** Maximum move from the last signed value; null for feeds with jumping values, such as the session end. */
  readonly move: MoveRules | null
}

/** Reasons why a signer refuses. The list is closed. */
export const SIGNING_REFUSALS = [
  ...(['UNKNOWN_FEED', 'OUT_OF_RANGE', 'STALE', 'FUTURE', 'OLDER', 'CONFLICT', 'MOVE_TOO_LARGE'] as const),
] as const
export type SigningRefusal = (typeof SIGNING_REFUSALS)[number]

/**
 * A signer's memory of a feed.
 * A restarted signer remembers no price, but the time before which it may have signed another price.
 */
export interface LastSigned {
  readonly price: bigint | null
  readonly observedAt: Millis
}

/**
 * Refusal of the signer; null if it may sign. A signer signs one price for each time, and never an earlier time.
 */
export function signingRefusal(
  { price, observedAt }: Reading,
  last: LastSigned,
  { range, maxAge, maxAhead, move }: SigningRules,
  now: Millis,
): SigningRefusal | null {
  if (price < range.low || price > range.high) return 'OUT_OF_RANGE'
  if (now - observedAt > maxAge) return 'STALE'
  if (observedAt - now > maxAhead) return 'FUTURE'
  if (observedAt < last.observedAt) return 'OLDER'
  if (observedAt === last.observedAt && price !== last.price) return 'CONFLICT'
  if (move === null || last.price === null) return null
  const bound = allowedMove(last.price as UsedReport['price'], observedAt - last.observedAt, move)
  return abs(price - last.price) <= bound ? null : 'MOVE_TOO_LARGE'
}
