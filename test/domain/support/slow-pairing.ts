/**
 * A second implementation of pairing, slow and simple: it lines up single steps of buys and sells, and counts
 * neighbours of the same pair.
 */
import type { RestingOrder } from '../../../domain/book/book.ts'
import type { Seq } from '../../../domain/units.ts'

export interface SlowPair {
  readonly buySeq: Seq
  readonly sellSeq: Seq
  readonly steps: number
  readonly makerSeq: Seq
}

export function pairsOf(orders: readonly RestingOrder[], fills: ReadonlyMap<Seq, number>): SlowPair[] {
  const line = (side: RestingOrder['side'], types: readonly string[]): RestingOrder[] =>
    types.flatMap((type) =>
      orders
        .filter((order) => order.side === side && order.type === type)
        .sort((a, b) => a.seq - b.seq)
        .flatMap((order) => Array<RestingOrder>(fills.get(order.seq) ?? 0).fill(order)),
    )
  const buys = line('LONG', ['MARKET', 'LIMIT'])
  const sells = line('SHORT', ['LIMIT', 'MARKET'])
  const pairs: { buySeq: Seq; sellSeq: Seq; steps: number; makerSeq: Seq }[] = []
  for (const [i, buy] of buys.entries()) {
    const sell = sells[i] as RestingOrder
    const last = pairs.at(-1)
    if (last?.buySeq === buy.seq && last.sellSeq === sell.seq) last.steps++
    else pairs.push({ buySeq: buy.seq, sellSeq: sell.seq, steps: 1, makerSeq: makerOf(buy, sell) })
  }
  return pairs
}

function makerOf(buy: RestingOrder, sell: RestingOrder): Seq {
  if (buy.type === 'LIMIT' && sell.type === 'MARKET') return buy.seq
  if (sell.type === 'LIMIT' && buy.type === 'MARKET') return sell.seq
  return Math.min(buy.seq, sell.seq) as Seq
}
