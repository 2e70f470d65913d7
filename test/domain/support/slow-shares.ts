/** Tranches and pro-rata shares once more, slow and obvious: steps that remain are assigned one at a time. */

import type { RestingOrder } from '../../../domain/book/book.ts'
import type { Seq } from '../../../domain/units.ts'

export interface Tranche {
  readonly order: RestingOrder
  readonly steps: number
  readonly opens: boolean
}

/** Floors, then hands single steps to the largest remainder until the volume is reached. */
export function shares(tranches: readonly Tranche[], volume: number): Map<Seq, number> {
  const claims = new Map<Seq, number>()
  for (const { order, steps } of tranches) claims.set(order.seq, (claims.get(order.seq) ?? 0) + steps)
  const all = BigInt([...claims.values()].reduce((sum, steps) => sum + steps, 0))
  const rows = [...claims].map(([seq, steps]) => {
    const exact = BigInt(volume) * BigInt(steps)
    return { seq, got: Number(exact / all), remainder: exact % all }
  })
  while (rows.reduce((sum, { got }) => sum + got, 0) < volume) {
    const next = rows.reduce((best, row) =>
      row.remainder > best.remainder || (row.remainder === best.remainder && row.seq < best.seq) ? row : best,
    )
    next.got++
    next.remainder = -1n
  }
  return new Map(rows.filter(({ got }) => got > 0).map(({ seq, got }) => [seq, got]))
}

/** `reach`: at how many ticks of the band each order's own limit lets it trade. */
export function trancheOrder(
  a: RestingOrder,
  b: RestingOrder,
  reach: ReadonlyMap<RestingOrder, number>,
): number {
  return (
    Number(b.forced) - Number(a.forced) ||
    (reach.get(b) as number) - (reach.get(a) as number) ||
    Number(b.type === 'MARKET') - Number(a.type === 'MARKET') ||
    Number(b.reduceOnly) - Number(a.reduceOnly) ||
    a.seq - b.seq
  )
}

export const total = (tranches: readonly Tranche[]): number =>
  tranches.reduce((sum, { steps }) => sum + steps, 0)

/** Whether the fills fit one part: 200 orders, and 400 slots if the chain has none of them yet. */
export function fitsOnePart(orders: readonly RestingOrder[], fills: ReadonlyMap<Seq, number>): boolean {
  const filled = orders.filter(({ seq }) => fills.has(seq))
  const partly = filled.filter(({ seq, remaining }) => (fills.get(seq) as number) < remaining)
  const accounts = new Set(filled.map(({ account }) => account))
  return filled.length <= 200 && filled.length + partly.length + accounts.size + 2 <= 400
}

/** The result of a round in which no orders cross. */
export const NOTHING = {
  price: null,
  rule: null,
  volume: 0,
  demand: 0,
  supply: 0,
  fills: new Map<Seq, number>(),
  pairs: [],
} as const
