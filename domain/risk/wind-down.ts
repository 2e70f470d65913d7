/**
 * Rules for the end of a market: a fixed price and funding index, a window for reporting deficits, one
 * haircut, claims in any order. Twin of the contract's WindDownLib.
 */

import type { MarketSpec } from '../market/market.ts'
import { exposureOf } from '../positions/margin.ts'
import type { Position } from '../positions/position.ts'
import {
  divFloor,
  type FundingIndex,
  type Millis,
  maxOf,
  minOf,
  mulDivDown,
  ONE,
  type Price,
  type Quote,
  type Rate,
  type Seconds,
} from '../units.ts'

/** Time without a heartbeat after a freeze request, from which any account may freeze the market. */
export const SILENCE = 86_400_000 as Millis
/** Window after the end in which insolvent accounts can be reported; claims begin after it. */
export const INSOLVENCY_WINDOW = 259_200_000 as Millis
/** Time for covering a deficit after a pause of the bank that began before the haircut was fixed. */
export const COVER_TIME = 86_400_000 as Millis

/**
 * Last moment for reports of insolvent accounts; claims begin after it. A pause that begins before the haircut
 * is fixed extends it to a day after the pause. `pauseEndsAt`: of the last pause; 0 if there was none.
 */
export const windowEndOf = (endedAt: Millis, isHaircutFixed: boolean, pauseEndsAt: Seconds): Millis => {
  const planned = (endedAt + INSOLVENCY_WINDOW) as Millis
  return isHaircutFixed ? planned : (Math.max(planned, pauseEndsAt * 1000 + COVER_TIME) as Millis)
}

/** Value of the position in wei at the fixed price, rounded down; negative for a deficit. */
export const valueAt = (spec: MarketSpec, position: Position, index: FundingIndex, price: Price): Quote =>
  divFloor(exposureOf(spec, position, index, price).equity, ONE) as Quote

/**
 * The deficit of a position in wei, rounded up; 0 if it is solvent. The rounding increases the haircut, so
 * that payouts never exceed the pool.
 */
export const deficitAt = (spec: MarketSpec, position: Position, index: FundingIndex, price: Price): Quote =>
  maxOf(-valueAt(spec, position, index, price), 0n) as Quote

/** The fraction of its value that every solvent position is paid: `pool / owed`, at most 1. */
export interface Haircut {
  /** The pool when the haircut is fixed: its value at the freeze plus payments that covered deficits. */
  readonly pool: Quote
  /** Total value of the solvent positions: the pool at the freeze plus all reported deficits. */
  readonly owed: Quote
}

/** The haircut, fixed once the window for deficits has closed. */
export const haircutOf = (poolAtFreeze: Quote, poolNow: Quote, deficit: Quote): Haircut => ({
  pool: minOf(poolNow, (poolAtFreeze + deficit) as Quote),
  owed: (poolAtFreeze + deficit) as Quote,
})

/** The fraction of its value that a position is paid, x 1e18, rounded down; 1 if nothing is owed. */
export const payoutRatio = ({ pool, owed }: Haircut): Rate =>
  (owed === 0n ? ONE : mulDivDown(ONE, pool, owed)) as Rate

/**
 * Wei due for a claim of `value`, rounded down; `value` itself if `owed` is 0 (no deficit was reported and
 * the pool was empty).
 */
export const claimDue = (value: Quote, { pool, owed }: Haircut): Quote => {
  if (value <= 0n) return 0n as Quote
  return owed === 0n ? value : (mulDivDown(value, pool, owed) as Quote)
}
