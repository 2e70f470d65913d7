/** Rebuilds positions from the events of margin and leverage adjustments. Pure. */

import { invariant } from '../invariant.ts'
import type { PositionEffect } from '../risk/risk-replay.ts'
import type { Address, Millis, Quote } from '../units.ts'
import { FLAT, type Position } from './position.ts'

/** A mined adjustment. */
export interface PositionAdjusted {
  readonly account: Address
  /** The account or one of its session keys. */
  readonly signer: Address
  readonly nonce: bigint
  readonly asOf: Millis
  /** Wei from the free balance into the position; negative in the other direction. */
  readonly amount: Quote
  /** Folded margin after the adjustment. */
  readonly foldedMargin: Quote
  /** Null if only margin was adjusted. */
  readonly leverage: number | null
}

export function applyAdjusted(
  positions: ReadonlyMap<Address, Position>,
  event: PositionAdjusted,
): PositionEffect {
  const { account, amount, leverage, foldedMargin } = event
  const before = positions.get(account) ?? FLAT
  invariant(
    before.foldedMargin + amount === foldedMargin,
    'the event matches the margin that the account had',
  )
  const after = { ...before, foldedMargin, leverage: leverage ?? before.leverage }
  const free = amount === 0n ? [] : [{ account, delta: -amount as Quote }]
  return { positions: new Map([[account, after]]), free }
}
