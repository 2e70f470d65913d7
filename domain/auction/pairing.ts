/** Pairs filled buys with filled sells for fees and fill records; quantities and price are already fixed. */
import type { RestingOrder } from '../book/book.ts'
import { invariant } from '../invariant.ts'
import { pairFees } from '../market/fees.ts'
import type { MarketSpec } from '../market/market.ts'
import type { Quote, Seq, Steps, Ticks } from '../units.ts'
import type { Pair } from './clearing.ts'

/** An order and its share of the volume, above 0 steps. */
export interface Share {
  readonly order: RestingOrder
  readonly steps: Steps
}

/**
 * Pairs buys with sells of equal total, by seq, in at most n + m - 1 pairs. Market orders meet limit orders first; two
 * market orders meet only for the unavoidable volume.
 */
export function pairUp(
  spec: MarketSpec,
  price: Ticks,
  buys: readonly Share[],
  sells: readonly Share[],
): Pair[] {
  const buyQueue = buys.toSorted((a, b) => byType(b, a) || bySeq(a, b))
  const sellQueue = sells.toSorted((a, b) => byType(a, b) || bySeq(a, b))
  const pairs: Pair[] = []
  let at = 0
  let sellLeft = (sellQueue[0]?.steps ?? 0) as number
  for (const buy of buyQueue) {
    let buyLeft: number = buy.steps
    while (buyLeft > 0) {
      const sell = sellQueue[at]
      invariant(sell !== undefined, 'the buys and sells of a batch have equal totals')
      const steps = Math.min(buyLeft, sellLeft) as Steps
      pairs.push(pairOf(spec, price, buy.order, sell.order, steps))
      buyLeft -= steps
      sellLeft -= steps
      if (sellLeft === 0) sellLeft = sellQueue[++at]?.steps ?? 0
    }
  }
  invariant(at === sellQueue.length, 'the buys and sells of a batch have equal totals')
  return pairs
}

/** Sorts LIMIT before MARKET. */
const byType = (a: Share, b: Share): number =>
  Number(a.order.type === 'MARKET') - Number(b.order.type === 'MARKET')
const bySeq = (a: Share, b: Share): number => a.order.seq - b.order.seq

function pairOf(spec: MarketSpec, price: Ticks, buy: RestingOrder, sell: RestingOrder, steps: Steps): Pair {
  const maker = makerOf(buy, sell)
  const fees = pairFees(spec, { price, steps, makerSide: maker.side }, spec)
  return {
    buySeq: buy.seq,
    sellSeq: sell.seq,
    steps,
    makerSeq: maker.seq,
    buyFee: fees.long,
    sellFee: fees.short,
  }
}

/** Maker of a pair: the limit order against a market order; otherwise the earlier seq. */
function makerOf(a: RestingOrder, b: RestingOrder): RestingOrder {
  if (a.type !== b.type) return a.type === 'LIMIT' ? a : b
  return a.seq < b.seq ? a : b
}

/** Totals of one order's pairs: steps at the taker and maker rates, fee in wei. */
export interface Tally {
  taker: Steps
  maker: Steps
  fee: Quote
}

export function tally(pairs: readonly Pair[]): Map<Seq, Tally> {
  const tallies = new Map<Seq, Tally>()
  for (const { buySeq, sellSeq, steps, makerSeq, buyFee, sellFee } of pairs) {
    count(tallies, buySeq, steps, buySeq === makerSeq, buyFee)
    count(tallies, sellSeq, steps, sellSeq === makerSeq, sellFee)
  }
  return tallies
}

function count(tallies: Map<Seq, Tally>, seq: Seq, steps: Steps, isMaker: boolean, fee: Quote): void {
  let order = tallies.get(seq)
  if (order === undefined) {
    order = { taker: 0 as Steps, maker: 0 as Steps, fee: 0n as Quote }
    tallies.set(seq, order)
  }
  if (isMaker) order.maker = (order.maker + steps) as Steps
  else order.taker = (order.taker + steps) as Steps
  order.fee = (order.fee + fee) as Quote
}
