/**
 * Deleveraging lights of a position: its fifth by score among the candidates of its side.
 * Thresholds are computed once per market, so that one reader does not rank all positions.
 */
import type { MarketSpec } from '../market/market.ts'
import type { Position } from '../positions/position.ts'
import type { FundingIndex, Price } from '../units.ts'
import { scoreOf } from './deleverage.ts'

/** Number of lights; five lights mark the fifth that is deleveraged first. */
export const LIGHTS = 5

/** Prices of a ranking. Scores at different prices are not comparable. */
export interface RankBasis {
  readonly oracle: Price
  readonly index: FundingIndex
}

/**
 * Score thresholds per side: the lowest score of the top fifth, of the top two fifths, and so on up to four;
 * empty without candidates.
 */
export interface DeleveragingRanks extends RankBasis {
  readonly longs: readonly bigint[]
  readonly shorts: readonly bigint[]
}

/** Maximum ranked positions per side; it bounds the time of one ranking. A larger side is sampled evenly. */
export const MOST_RANKED = 1_000

/**
 * Index sampled from each run of `every` positions. It varies, so that a periodic pattern in account order
 * does not bias the sample.
 */
const placeIn = (run: number, every: number): number => (Math.imul(run + 1, 0x9e3779b1) >>> 8) % every

/** Samples at most `MOST_RANKED` positions per side. Two passes over 100,000 positions copy none of them. */
export function samplePositions(positions: { values(): Iterable<Position> }): Position[] {
  const counts = { long: 0, short: 0 }
  for (const { size } of positions.values()) {
    if (size > 0) counts.long++
    if (size < 0) counts.short++
  }
  const every = { long: Math.ceil(counts.long / MOST_RANKED), short: Math.ceil(counts.short / MOST_RANKED) }
  const places = { long: 0, short: 0 }
  const sample: Position[] = []
  for (const position of positions.values()) {
    if (position.size === 0) continue
    const side = position.size > 0 ? 'long' : 'short'
    const place = places[side]++
    const run = Math.floor(place / every[side])
    if (place % every[side] === placeIn(run, every[side])) sample.push(position)
  }
  return sample
}

export function rankSides(
  spec: MarketSpec,
  positions: readonly Position[],
  { oracle, index }: RankBasis,
): DeleveragingRanks {
  const boundsOf = (side: readonly Position[]) =>
    fifths(side.flatMap((position) => scoreOf(spec, position, index, oracle) ?? []))
  return {
    ...{ oracle, index },
    longs: boundsOf(positions.filter(({ size }) => size > 0)),
    shorts: boundsOf(positions.filter(({ size }) => size < 0)),
  }
}

function fifths(scores: readonly bigint[]): bigint[] {
  if (scores.length === 0) return []
  const sorted = scores.toSorted((a, b) => (a === b ? 0 : a > b ? -1 : 1))
  return Array.from({ length: LIGHTS - 1 }, (_, at) => {
    const last = Math.ceil(((at + 1) * sorted.length) / LIGHTS) - 1
    return sorted[last] as bigint
  })
}

/** Five lights for the highest fifth, one for the lowest; null if the position is not a candidate. */
export function lightsOf(spec: MarketSpec, position: Position, ranks: DeleveragingRanks): number | null {
  const score = scoreOf(spec, position, ranks.index, ranks.oracle)
  if (score === null) return null
  const bounds = position.size > 0 ? ranks.longs : ranks.shorts
  return LIGHTS - bounds.filter((bound) => score < bound).length
}
