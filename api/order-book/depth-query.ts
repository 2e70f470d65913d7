/** The levels that an order could match, without the orders of its own account. */
import { sql } from 'kysely'
import type { Db } from '../../db/client.ts'
import type { Side } from '../../domain/orders/order.ts'
import type { Depth } from '../../domain/orders/sizing.ts'

/** The account that places an order, and its side. */
export interface Facing {
  readonly marketId: number
  readonly userId: number
  readonly side: Side
}

const MAX_LEVELS = 1000

/** The levels on the side opposite to `side`, best price first, at most `levels`. */
export async function depthFacing(
  db: Db,
  { marketId, userId, side }: Facing,
  levels = MAX_LEVELS,
): Promise<Depth> {
  const facing = side === 'LONG' ? 'SHORT' : 'LONG'
  const { rows } = await sql<Depth[number]>`
    select l.price, l.quantity - coalesce(o.quantity, 0) as steps
    from read.book_levels l
    left join (
      select price, sum(quantity - filled - settling)::bigint as quantity
      from orders
      where market_id = ${marketId} and user_id = ${userId} and ended_at is null and closing_reason is null
        and status = 'OPEN' and side = ${facing} and price > 0
      group by price
    ) o using (price)
    where l.market_id = ${marketId} and l.side = ${facing} and l.quantity > coalesce(o.quantity, 0)
    order by ${facing === 'LONG' ? sql`l.price desc` : sql`l.price`}
    limit ${Math.min(levels, MAX_LEVELS)}
  `.execute(db)
  return rows
}
