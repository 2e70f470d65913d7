/** The choice of the clearing price once more, slow and obvious: the rules read one after another. */

import type { PriceRule } from '../../../domain/auction/clearing.ts'
import type { MarketSpec } from '../../../domain/market/market.ts'
import type { Price } from '../../../domain/units.ts'

/** Demand and supply at one tick. */
export interface Row {
  readonly tick: number
  readonly demand: number
  readonly supply: number
}

interface PriceTerms {
  /** Ascending: the ticks of the largest volume, and those of them with the smallest surplus. */
  readonly largest: readonly Row[]
  readonly tied: readonly Row[]
  /** Whether limit orders alone carry the volume at the first or last of the tied ticks. */
  readonly counts: (tick: number) => boolean
  readonly spec: MarketSpec
  readonly oracle: Price
}

export function slowPrice(input: PriceTerms): {
  tick: number
  rule: PriceRule
} {
  const { largest, tied, counts, oracle, spec } = input
  const x = (tied[0] as Row).tick
  const y = (tied.at(-1) as Row).tick
  if (largest.length === 1) return { tick: x, rule: 'volume' }
  if (tied.length === 1) return { tick: x, rule: 'surplus' }
  const surpluses = tied.map((row) => Math.sign(row.demand - row.supply))
  const carried = counts(x) || counts(y)
  if (carried && surpluses.every((sign) => sign > 0)) return { tick: counts(y) ? y : x, rule: 'buy_pressure' }
  if (carried && surpluses.every((sign) => sign < 0))
    return { tick: counts(x) ? x : y, rule: 'sell_pressure' }
  if (counts(x) && !counts(y)) return { tick: x, rule: 'limit' }
  if (counts(y) && !counts(x)) return { tick: y, rule: 'limit' }
  const distance = (tick: number): bigint => {
    const off = BigInt(tick) * spec.tick - oracle
    return off < 0n ? -off : off
  }
  const between = tied.map((row) => row.tick)
  const tick = between.reduce((best, each) => (distance(each) < distance(best) ? each : best))
  return { tick, rule: 'oracle' }
}
