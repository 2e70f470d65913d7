/**
 * How a market ends: a fixed price and funding index, deficits counted for a while, one haircut, claims in any order. Twin of
 * WindDownLib.
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
} from '../units.ts'

/** So long must the operator be silent after a freeze request before anyone may freeze the market. */
export const SILENCE = 86_400_000 as Millis
/** How long after the end insolvent accounts can be reported; claims begin after it. */
export const INSOLVENCY_WINDOW = 259_200_000 as Millis

/** Wei that the position is worth at the fixed price, down; negative where it owes. */
export const valueAt = (spec: MarketSpec, position: Position, index: FundingIndex, price: Price): Quote =>
  divFloor(exposureOf(spec, position, index, price).equity, ONE) as Quote

/** What a position lacks, up; 0 where it is solvent. Rounded against the haircut, so that payouts never exceed the pool. */
export const deficitAt = (spec: MarketSpec, position: Position, index: FundingIndex, price: Price): Quote =>
  maxOf(-valueAt(spec, position, index, price), 0n) as Quote

/** The share of its value that every solvent position is paid: `pool / owed`, at most 1. */
export interface Haircut {
  /** What the pool holds when the haircut is fixed: its value at the freeze, and what was put in to cover deficits. */
  readonly pool: Quote
  /** What solvent positions are worth together: the pool at the freeze + all reported deficits. */
  readonly owed: Quote
}

/** The haircut, once no more deficits are counted. */
export const haircutOf = (poolAtFreeze: Quote, poolNow: Quote, deficit: Quote): Haircut => ({
  pool: minOf(poolNow, (poolAtFreeze + deficit) as Quote),
  owed: (poolAtFreeze + deficit) as Quote,
})

/** What a claim of `value` is due, down; in full if nothing is owed: no insolvency was reported and the pool was empty. */
export const claimDue = (value: Quote, { pool, owed }: Haircut): Quote => {
  if (value <= 0n) return 0n as Quote
  return owed === 0n ? value : (mulDivDown(value, pool, owed) as Quote)
}
