/**
 * Rules of a market's wind-down: a fixed price and funding index, a window for deficit reports, one haircut,
 * and claims in any order.
 * Twin of the contract's WindDownLib.
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

/** Time without a heartbeat after a freeze request. Afterwards any account may freeze the market. */
export const SILENCE = 86_400_000 as Millis
/** Window after the end in which insolvent accounts can be reported; claims begin after it. */
export const INSOLVENCY_WINDOW = 259_200_000 as Millis
/** Time to cover a deficit after a bank pause that began before the haircut was fixed. */
export const COVER_TIME = 86_400_000 as Millis

/**
 * Last time for insolvency reports; claims begin after it.
 * A pause before the haircut is fixed extends it to one day after the pause. `pauseEndsAt`: 0 if there was no pause.
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

/** The fraction `pool / owed`, at most 1, of its value that every solvent position is paid. */
export interface Haircut {
  /** Pool when the haircut is fixed: its value at the freeze plus payments that covered deficits. */
  readonly pool: Quote
  /** Total value of the solvent positions: the pool at the freeze plus all reported deficits. */
  readonly owed: Quote
}

/** The haircut, fixed once the deficit window has closed. */
export const haircutOf = (poolAtFreeze: Quote, poolNow: Quote, deficit: Quote): Haircut => ({
  pool: minOf(poolNow, (poolAtFreeze + deficit) as Quote),
  owed: (poolAtFreeze + deficit) as Quote,
})

/** Paid fraction of a position's value × 1e18, rounded down; 1 if nothing is owed. */
export const payoutRatio = ({ pool, owed }: Haircut): Rate =>
  (owed === 0n ? ONE : mulDivDown(ONE, pool, owed)) as Rate

/**
 * Wei due for a claim of `value`, rounded down.
 * It is `value` itself if `owed` is 0: no deficit was reported and the pool was empty.
 */
export const claimDue = (value: Quote, { pool, owed }: Haircut): Quote => {
  if (value <= 0n) return 0n as Quote
  return owed === 0n ? value : (mulDivDown(value, pool, owed) as Quote)
}
