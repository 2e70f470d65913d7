/** What adjustments and funding updates did, rebuilt from their logs alone. Pure. */

import { invariant } from '../invariant.ts'
import type { FundingRate } from '../prices/funding.ts'
import type { PositionEffect } from '../risk/risk-replay.ts'
import type { Address, FundingIndex, Millis, Price, Quote } from '../units.ts'
import { FLAT, type Position } from './position.ts'

/** An adjustment as mined. */
export interface PositionAdjusted {
  readonly account: Address
  /** The account or a session key of it. */
  readonly signer: Address
  readonly nonce: bigint
  readonly asOf: Millis
  /** Into the position and out of the free balance; negative the other way. */
  readonly amount: Quote
  /** Stored margin after it. */
  readonly foldedMargin: Quote
  /** Null where only margin was adjusted. */
  readonly leverage: number | null
}

/** The rate that runs from the action's `asOf`, and the index as of then. The report has become the market's last. */
export interface FundingUpdated extends FundingRate {
  readonly actionId: number
  readonly fundingIndex: FundingIndex
  readonly oraclePrice: Price
  readonly observedAt: Millis
}

export function applyAdjusted(
  positions: ReadonlyMap<Address, Position>,
  event: PositionAdjusted,
): PositionEffect {
  const { account, amount, leverage, foldedMargin } = event
  const before = positions.get(account) ?? FLAT
  invariant(before.foldedMargin + amount === foldedMargin, 'the log repeats what the account held')
  const after = { ...before, foldedMargin, leverage: leverage ?? before.leverage }
  const free = amount === 0n ? [] : [{ account, delta: -amount as Quote }]
  return { positions: new Map([[account, after]]), free }
}
