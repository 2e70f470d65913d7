/**
 * Finds a batch's clearing price: largest volume, then smallest surplus, then the interval end that limit
 * orders alone carry, then the oracle price.
 */

import { invariant } from '../invariant.ts'
import type { Band } from '../market/band.ts'
import { maxOf, minOf, type Steps, type Ticks } from '../units.ts'
import type { PriceRule } from './clearing.ts'
import type { BatchEntry } from './tranches.ts'

export interface PriceInput {
  readonly buys: readonly BatchEntry[]
  readonly sells: readonly BatchEntry[]
  readonly band: Band
  /** Tick nearest to the oracle price, half rounded down. It decides if no end of the interval does. */
  readonly oracle: Ticks
}

export interface PriceResult {
  readonly price: Ticks
  readonly rule: PriceRule
  readonly demand: Steps
  readonly supply: Steps
}

/** The clearing price; null if no orders cross. */
export function clearingPrice(input: PriceInput): PriceResult | null {
  // Demand falls and supply rises with the price, so ticks with the largest volume form one interval, and ticks
  // with the smallest surplus form one inside it. Its ends suffice (`nextTick`).
  const largest = largestVolume(input)
  if (largest.length === 0) return null
  const surplus = largest.reduce(
    (least, point) => Math.min(least, surplusAt(point)),
    Number.POSITIVE_INFINITY,
  )
  const tied = largest.filter((point) => surplusAt(point) === surplus)

  const { price, rule } = choosePrice(input, largest, tied)
  const { demand, supply } = pointAt(tied, price)
  return { price, rule, demand, supply }
}

/** Demand and supply at the first or last tick of an interval on which both are constant. */
interface Point {
  readonly tick: Ticks
  readonly demand: Steps
  readonly supply: Steps
}

const surplusAt = ({ demand, supply }: Point): number => Math.abs(demand - supply)

function choosePrice(
  { buys, sells, oracle }: PriceInput,
  largest: readonly Point[],
  tied: readonly Point[],
): { price: Ticks; rule: PriceRule } {
  const { lo, hi } = endsOf(tied)
  if (lo === hi) {
    const widest = endsOf(largest)
    return { price: lo, rule: widest.lo === widest.hi ? 'volume' : 'surplus' }
  }
  const { demand, supply } = tied[0] as Point
  const volume = Math.min(demand, supply)
  const highCounts = limitSteps(buys, (limit) => limit >= hi) >= volume
  const lowCounts = limitSteps(sells, (limit) => limit <= lo) >= volume
  const isBuySurplus = tied.every((point) => point.demand > point.supply)
  const isSellSurplus = tied.every((point) => point.demand < point.supply)
  if (isBuySurplus && (highCounts || lowCounts)) return { price: highCounts ? hi : lo, rule: 'buy_pressure' }
  if (isSellSurplus && (highCounts || lowCounts)) return { price: lowCounts ? lo : hi, rule: 'sell_pressure' }
  if (highCounts !== lowCounts) return { price: highCounts ? hi : lo, rule: 'limit' }
  return { price: maxOf(lo, minOf(hi, oracle)), rule: 'oracle' }
}

/**
 * Steps of limit orders with an effective limit that satisfies the condition: an interval end wins if these
 * steps carry the volume.
 */
function limitSteps(entries: readonly BatchEntry[], isWithin: (limit: Ticks) => boolean): number {
  let sum = 0
  for (const { bounded, reducing, opening } of entries) {
    if (bounded.order.type === 'MARKET') continue
    if (reducing > 0 && isWithin(bounded.reducingLimit as Ticks)) sum += reducing
    if (opening > 0 && isWithin(bounded.openingLimit as Ticks)) sum += opening
  }
  return sum
}

const endsOf = (points: readonly Point[]): Band => ({
  lo: (points[0] as Point).tick,
  hi: (points.at(-1) as Point).tick,
})

/** The point of the interval that contains `price`. */
const pointAt = (points: readonly Point[], price: Ticks): Point =>
  points.findLast((point) => point.tick <= price) as Point

/** Steps that one side offers at each of its limits, ascending by limit. */
interface Curve {
  readonly limits: Float64Array
  readonly steps: Float64Array
  readonly total: number
}

function curveOf(entries: readonly BatchEntry[]): Curve {
  const stepsAt = new Map<number, number>()
  let total = 0
  const add = (limit: number, steps: number): void => {
    stepsAt.set(limit, (stepsAt.get(limit) ?? 0) + steps)
    total += steps
  }
  for (const { bounded, reducing, opening } of entries) {
    if (reducing > 0) add(bounded.reducingLimit as Ticks, reducing)
    if (opening > 0) add(bounded.openingLimit as Ticks, opening)
  }
  invariant(Number.isSafeInteger(total), 'the total steps of one side are a safe integer')
  const limits = new Float64Array(stepsAt.size)
  let at = 0
  for (const limit of stepsAt.keys()) limits[at++] = limit
  limits.sort()
  return { limits, steps: limits.map((limit) => stepsAt.get(limit) as number), total }
}

/**
 * The points with the largest volume, ascending; empty if the largest volume is 0. One walk over the band,
 * from change to change.
 */
function largestVolume({ buys, sells, band }: PriceInput): Point[] {
  const buy = curveOf(buys)
  const sell = curveOf(sells)
  let largest: Point[] = []
  let maximum = 1
  let demand = buy.total
  let supply = 0
  let nextBuy = 0
  let nextSell = 0
  for (let tick: number = band.lo; tick <= band.hi; ) {
    while ((buy.limits[nextBuy] as number) < tick) demand -= buy.steps[nextBuy++] as number
    while ((sell.limits[nextSell] as number) <= tick) supply += sell.steps[nextSell++] as number
    const volume = Math.min(demand, supply)
    if (volume > maximum) largest = []
    if (volume >= maximum) {
      maximum = volume
      largest.push({ tick: tick as Ticks, demand: demand as Steps, supply: supply as Steps })
    }
    tick = nextTick(tick, band, buy.limits[nextBuy], sell.limits[nextSell])
  }
  return largest
}

/**
 * Next end of an interval of constant demand and supply. `buyLimit`: lowest buy limit at or above `tick`; demand falls
 * right above it. `sellLimit`: lowest sell limit above `tick`; supply rises at it.
 */
function nextTick(
  tick: number,
  { hi }: Band,
  buyLimit = Number.POSITIVE_INFINITY,
  sellLimit = Number.POSITIVE_INFINITY,
) {
  const byBuy = buyLimit > tick ? buyLimit : tick + 1
  const bySell = sellLimit - 1 > tick ? sellLimit - 1 : sellLimit
  const next = Math.min(byBuy, bySell)
  return tick < hi ? Math.min(next, hi) : next
}
