/** Fills of a position for tests. Default: 1 unit at 100, leverage 10, all taker. */
import type { MarketSpec } from '../../../domain/market/market.ts'
import { priceOf } from '../../../domain/market/market.ts'
import {
  applyFill,
  type FillResult,
  type FillTerms,
  openingBasis,
  type Position,
  type PositionFill,
} from '../../../domain/positions/position.ts'
import type { FundingIndex } from '../../../domain/units.ts'
import { index, steps, ticks } from '../../support/markets.ts'

export const NO_FUNDING = index(0n)
export const terms = (spec: MarketSpec, fundingIndex: FundingIndex = NO_FUNDING): FillTerms => ({
  fundingIndex,
  makerFee: spec.makerFee,
  takerFee: spec.takerFee,
})

export const aFill = (spec: MarketSpec, fill: Partial<PositionFill>): PositionFill => {
  const full = { side: 'LONG' as const, price: ticks(1000), steps: steps(1000), leverage: 10, ...fill }
  const basis = openingBasis(
    spec,
    { side: full.side, limit: full.price },
    full.price,
    priceOf(spec, full.price),
  )
  return { takerSteps: full.steps, basis, ...full }
}

export function mustFill(
  spec: MarketSpec,
  position: Position,
  fill: Partial<PositionFill>,
  at = NO_FUNDING,
): FillResult {
  const verdict = applyFill(spec, position, aFill(spec, fill), terms(spec, at))
  if (!verdict.ok)
    throw new Error(JSON.stringify(verdict.refusal, (_, v) => (typeof v === 'bigint' ? `${v}` : v)))
  return verdict.value
}
