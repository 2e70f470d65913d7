/** The levels that an order could match, without the orders of its own account. */
import { sql } from 'kysely'
import type { Db } from '../../db/client.ts'
import type { Side } from '../../domain/orders/order.ts'
import type { Depth } from '../../domain/orders/sizing.ts'

const LEVELS = 1000

/** The levels on the side opposite to `side`, best price first. */
export async function depthFacing(
  db: Db,
  { marketId, userId, side }: { readonly marketId: number; readonly userId: number; readonly side: Side },
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
    order by case when l.side = 'LONG' then -l.price else l.price end
    limit ${LEVELS}
  `.execute(db)
  return rows
}
