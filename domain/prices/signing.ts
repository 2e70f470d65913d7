/** What a signer of reports checks by itself before it signs. */
import { abs, type Millis } from '../units.ts'
import type { Reading } from './aggregate.ts'
import type { ValueRange } from './feed.ts'
import { allowedMove, type MoveRules, type UsedReport } from './report.ts'

export interface SigningRules {
  readonly range: ValueRange
  /** By the signer's own clock. */
  readonly maxAge: Millis
  readonly maxAhead: Millis
  /** How far the value may move from the one signed last; null for feeds whose values jump. */
  readonly move: MoveRules | null
}

/** Why a signer does not sign. Closed list. */
export const SIGNING_REFUSALS = [
  ...(['UNKNOWN_FEED', 'OUT_OF_RANGE', 'STALE', 'FUTURE', 'OLDER', 'CONFLICT', 'MOVE_TOO_LARGE'] as const),
] as const
export type SigningRefusal = (typeof SIGNING_REFUSALS)[number]

/**
 * What a signer remembers of a feed. A signer that has just started remembers no price, but the time before which it may have
 * signed another one.
 */
export interface LastSigned {
  readonly price: bigint | null
  readonly observedAt: Millis
}

/** Null if the signer may sign. It signs one price for each time, and never goes back in time. */
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
