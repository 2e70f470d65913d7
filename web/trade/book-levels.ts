/** Groups the levels of an order book. Pure. */
import type { Level } from '../../client/responses.ts'

export interface Row {
  /** In wei. */
  readonly price: bigint
  readonly quantity: bigint
  /** From the best price to this row. */
  readonly total: bigint
  readonly orders: number
}

/** Buys are grouped down and sells up, so that a row never shows a better price than its orders have. */
export function grouped(
  levels: readonly Level[],
  side: 'LONG' | 'SHORT',
  group: bigint,
  most: number,
): readonly Row[] {
  const rows: Row[] = []
  let total = 0n
  for (const level of levels) {
    const exact = BigInt(level.price_e18_raw)
    const below = (exact / group) * group
    const price = side === 'LONG' || below === exact ? below : below + group
    const quantity = BigInt(level.quantity_e18_raw)
    const last = rows.at(-1)
    if (last?.price === price) {
      total += quantity
      rows[rows.length - 1] = {
        price,
        quantity: last.quantity + quantity,
        total,
        orders: last.orders + level.order_count,
      }
      continue
    }
    if (rows.length === most) break
    total += quantity
    rows.push({ price, quantity, total, orders: level.order_count })
  }
  return rows
}

/** Steps of grouping that suit a tick: 1, 10, 50, 100 and 1,000 ticks. */
export const groupsOf = (tick: bigint): readonly bigint[] =>
  [1n, 10n, 50n, 100n, 1000n].map((by) => by * tick)
