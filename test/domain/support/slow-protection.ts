/**
 * The protection price once more, slow and obvious: the reference is read off the sorted quotes, and the price
 * is the last tick of the band that satisfies the bound, found by trying every tick.
 */

import type { RestingOrder } from '../../../domain/book/book.ts'
import type { MarketSpec } from '../../../domain/market/market.ts'
import { ONE, type Price, type Rate, type Seq } from '../../../domain/units.ts'

/** What one limit order can execute, at its effective limit. */
export interface SlowQuote {
  readonly order: RestingOrder
  readonly limit: number
  readonly steps: number
}

export interface SlowProtection {
  readonly seq: Seq
  readonly best: number | null
  readonly level: number | null
  readonly reference: bigint
  readonly price: number
}

interface Terms {
  readonly spec: MarketSpec
  readonly oracle: Price
  readonly priceProtection: Rate
}

/** `quotes` are those of other accounts that stood in the previous auction. */
export function slowProtection(
  { spec, oracle, priceProtection }: Terms,
  order: RestingOrder,
  ticks: readonly number[],
  quotes: readonly SlowQuote[],
): SlowProtection {
  const isBuy = order.side === 'LONG'
  const unit = quotes.flatMap(({ limit, steps }) => Array<number>(steps).fill(limit))
  unit.sort((a, b) => (isBuy ? a - b : b - a))
  const needed = 5 * spec.minQuantity
  const isDeep = unit.length >= needed
  const best = isDeep ? (unit[0] as number) : null
  const level = isDeep ? (unit[needed - 1] as number) : null
  const quoted =
    best === null || level === null
      ? oracle
      : referenceOf(spec, { isBuy, oracle, width: widthOf(order, priceProtection), best, level })
  const isWorse = isBuy ? quoted > oracle : quoted < oracle
  const reference = order.forced && isWorse ? oracle : quoted
  const bound = away(spec, isBuy, widthOf(order, priceProtection), reference)
  const allowed = ticks.filter((tick) => {
    const scaled = BigInt(tick) * spec.tick * ONE
    return isBuy ? scaled <= bound : scaled >= bound
  })
  const own = isBuy ? Math.max(...allowed, ticks[0] as number) : Math.min(...allowed, ticks.at(-1) as number)
  return { seq: order.seq, best, level, reference, price: reserved(spec, order, own) }
}

function referenceOf(
  spec: MarketSpec,
  input: { isBuy: boolean; oracle: bigint; width: bigint; best: number; level: number },
): bigint {
  const { isBuy, oracle, width } = input
  const best = BigInt(input.best) * spec.tick
  const level = BigInt(input.level) * spec.tick
  const start = isBuy === best > oracle ? best : oracle
  const scaled = away(spec, isBuy, width, start)
  const cap = isBuy ? scaled / ONE : (scaled + ONE - 1n) / ONE
  return isBuy === level < cap ? level : cap
}

const widthOf = ({ forced, triggered, widenings }: RestingOrder, width: bigint): bigint => {
  if (forced) return width * 3n + width * 3n * BigInt(widenings)
  return triggered ? width * 3n : width
}

/** The price moved by the width, times 10^18. */
function away(spec: MarketSpec, isBuy: boolean, width: bigint, price: bigint): bigint {
  const sign = isBuy ? 1n : -1n
  if (spec.kind !== 'binary_future') {
    const scaled = price * (ONE + sign * width)
    return scaled > 0n ? scaled : 0n
  }
  const distance = [width, price / 2n, (ONE - price) / 2n].reduce((a, b) => (a < b ? a : b))
  return (price + sign * distance) * ONE
}

function reserved(spec: MarketSpec, { side, openable, reservedPrice }: RestingOrder, tick: number): number {
  if (openable === 0) return tick
  if (side === 'LONG') return Math.min(tick, reservedPrice)
  return spec.kind === 'binary_future' ? Math.max(tick, reservedPrice) : tick
}
