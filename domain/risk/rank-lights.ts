/**
 * The lights of a position: which fifth of its side's candidates for deleveraging it is in, by score. The scores that divide the fifths are
 * computed for a whole market at once, so that no reader of one position ranks all of them.
 */
import type { MarketSpec } from '../market/market.ts'
import type { Position } from '../positions/position.ts'
import type { FundingIndex, Price } from '../units.ts'
import { scoreOf } from './deleverage.ts'

/** Five: the fifth that is deleveraged first. */
export const LIGHTS = 5

/** What ranks were computed at. Scores at different prices are not comparable. */
export interface RankBasis {
  readonly oracle: Price
  readonly index: FundingIndex
}

/** Of each side, the lowest scores of its highest fifth, two, three and four fifths; empty if it has no candidates. */
export interface DeleveragingRanks extends RankBasis {
  readonly longs: readonly bigint[]
  readonly shorts: readonly bigint[]
}

/** Positions whose scores are computed per side: bounds the time of one ranking. A larger side is sampled evenly. */
export const MOST_RANKED = 1_000

/** Of each run of `every` positions, which one is taken. It varies, so that a pattern in the order of the accounts is not sampled as one. */
const placeIn = (run: number, every: number): number => (Math.imul(run + 1, 0x9e3779b1) >>> 8) % every

/** A sample of the positions of both sides, with at most `MOST_RANKED` of each. Two passes over 100,000 positions copy none of them. */
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

/** Five lights for a candidate of the highest fifth, one for the lowest; null if the position is no candidate. */
export function lightsOf(spec: MarketSpec, position: Position, ranks: DeleveragingRanks): number | null {
  const score = scoreOf(spec, position, ranks.index, ranks.oracle)
  if (score === null) return null
  const bounds = position.size > 0 ? ranks.longs : ranks.shorts
  return LIGHTS - bounds.filter((bound) => score < bound).length
}
