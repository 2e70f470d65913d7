/** The levels that an order could match, and the orders of its own account, which it cannot. */
import { sql } from 'kysely'
import type { Db } from '../../db/client.ts'
import { marketShard } from '../../domain/journal/journal-row.ts'
import { type BookOrder, executableSteps } from '../../domain/orders/executable.ts'
import type { Side } from '../../domain/orders/order.ts'
import type { Depth } from '../../domain/orders/sizing.ts'
import type { Seq, Steps, Ticks } from '../../domain/units.ts'
import { ApiError } from '../errors.ts'
import { isFilling } from '../read-after/completeness.ts'

/** The account that places an order, and its side. */
export interface Facing {
  readonly marketId: number
  readonly userId: number
  readonly side: Side
}

const MAX_LEVELS = 1000

interface FacingRows {
  readonly is_filling: boolean
  readonly levels: Depth
  /** The account's open limit orders on that side, at most 500. */
  readonly own: readonly BookOrder[]
  /** The account's matched position. */
  readonly matched: Steps
}

/** The opposite side of the book, as an order would meet it. */
export interface FacingBook {
  /** The levels without the account's own orders, best price first. */
  readonly depth: Depth
  readonly ownOrders: readonly BookOrder[]
}

/** The side opposite to `side`, at most `levels` levels. Rejects with READ_MODEL_FILLING while the book is being rebuilt. */
export async function depthFacing(db: Db, facing: Facing, levels = MAX_LEVELS): Promise<FacingBook> {
  const most = Math.min(levels, MAX_LEVELS)
  const rows = await facingRows(db, facing, most)
  if (rows.is_filling) throw new ApiError('READ_MODEL_FILLING', {}, '2')
  const own = ownSteps(rows)
  const depth = rows.levels
    .map(({ price, steps }) => ({ price, steps: (steps - (own.get(price) ?? 0)) as Steps }))
    .filter(({ steps }) => steps > 0)
    .slice(0, most)
  return { depth, ownOrders: rows.own }
}

/** One statement, so one snapshot: a level includes exactly the orders that are deducted from it. */
async function facingRows(db: Db, { marketId, userId, side }: Facing, levels: number): Promise<FacingRows> {
  const facing = side === 'LONG' ? 'SHORT' : 'LONG'
  const { rows } = await sql<FacingRows>`
    with own as (
      select seq, side, price as limit, quantity - filled - settling as remaining, reduce_only as "reduceOnly", openable
      from read.orders
      where market_id = ${marketId} and user_id = ${userId} and status = 'OPEN' and status_reason is null
        and side = ${facing} and price > 0 and quantity > filled + settling
    ), levels as (
      select price, quantity as steps from read.book_levels
      where market_id = ${marketId} and side = ${facing}
      order by ${facing === 'LONG' ? sql`price desc` : sql`price`}
      limit ${levels} + (select count(*) from own)
    )
    select ${isFilling(`'orders'`, marketShard(marketId))} as is_filling,
      (select coalesce(json_agg(to_json(levels)), '[]') from levels) as levels,
      (select coalesce(json_agg(to_json(own)), '[]') from own) as own,
      coalesce((select size + pending from read.positions where market_id = ${marketId} and user_id = ${userId}), 0) as matched
  `.execute(db)
  return rows[0] as FacingRows
}

/** The account's executable steps by price. */
function ownSteps({ own, matched }: FacingRows): ReadonlyMap<Ticks, number> {
  const executable = executableSteps(matched, own)
  const steps = new Map<Ticks, number>()
  for (const { seq, limit } of own) {
    steps.set(limit, (steps.get(limit) ?? 0) + (executable.get(seq as Seq) ?? 0))
  }
  return steps
}
