/** The SQL of the projection `orders`: loads the rows that a chunk touches and writes the rows that it changed. */
import { sql } from 'kysely'
import type { Tx } from '../../../db/client.ts'
import { TERMINAL_STATUSES } from '../../../domain/orders/order-state.ts'
import type { ChunkWrites } from '../projection.ts'
import type { WriteClause } from '../read-table.ts'
import {
  LEVELS,
  type LevelDelta,
  type PositionedAccount,
  type TouchedAccounts,
} from '../tables/book-levels.ts'
import { FILLS, partKey, type ReadFill } from '../tables/fills.ts'
import { ORDER_CHANGES, type PartRef, type SourceEvents } from '../tables/order-events.ts'
import { ORDERS, type ReadOrder } from '../tables/orders.ts'
import { POSITIONS, type ReadPosition } from '../tables/positions.ts'
import type { LoadedRows, OrderChanges, TouchedKeys } from './changes.ts'

/** The touched rows of one market. */
export async function loadRows(tx: Tx, marketId: number, touched: TouchedKeys): Promise<LoadedRows> {
  const [orders, fills, positions] = await Promise.all([
    loadOrders(tx, touched.orders),
    loadFills(tx, marketId, touched.fills),
    loadPositions(tx, marketId, touched.positions),
  ])
  return { orders, fills, positions }
}

async function loadOrders(tx: Tx, ids: ReadonlySet<string>): Promise<LoadedRows['orders']> {
  if (ids.size === 0) return new Map()
  const rows = await sql<ReadOrder>`select * from read.orders where order_id = any(${[...ids]})`.execute(tx)
  return new Map(rows.rows.map((order) => [order.order_id, order]))
}

async function loadFills(tx: Tx, marketId: number, parts: ReadonlySet<string>): Promise<LoadedRows['fills']> {
  if (parts.size === 0) return new Map()
  const keys = [...parts].map((key) => key.split('-').map(Number))
  // One look-up per part, whatever the planner assumes about the table: a plan made while it is small reads all fills of the market.
  const { rows } = await sql<ReadFill>`
    select fills.*
    from unnest(${keys.map(([batch]) => batch)}::bigint[], ${keys.map(([, part]) => part)}::integer[]) as wanted (batch_id, part)
    cross join lateral (
      select * from read.fills
      where market_id = ${marketId} and batch_id = wanted.batch_id and part = wanted.part
      offset 0
    ) fills
  `.execute(tx)
  return Map.groupBy(rows, ({ batch_id, part }) => partKey(batch_id, part))
}

async function loadPositions(
  tx: Tx,
  marketId: number,
  users: ReadonlySet<string>,
): Promise<LoadedRows['positions']> {
  if (users.size === 0) return new Map()
  const { rows } = await sql<ReadPosition>`
    select * from read.positions where market_id = ${marketId} and user_id = any(${[...users]}::bigint[])
  `.execute(tx)
  return new Map(rows.map((position) => [String(position.user_id), position]))
}

/**
 * Of the touched accounts those that have an open limit order that its reservation does not cover, before the chunk. For nearly all accounts
 * this costs one look-up in a partial index.
 */
export async function loadUncovered(
  tx: Tx,
  marketId: number,
  { orders, accounts }: TouchedKeys,
): Promise<ReadonlySet<number>> {
  if (orders.size === 0 && accounts.size === 0) return new Set()
  const { rows } = await sql<{ user_id: number }>`
    select distinct user_id from read.orders
    where market_id = ${marketId} and uncovered > 0 and status = 'OPEN' and status_reason is null and price > 0
      and user_id = any(array(
        select unnest(${[...accounts]}::bigint[])
        union select user_id from read.orders where order_id = any(${[...orders]}::text[])
      ))
  `.execute(tx)
  return new Set(rows.map(({ user_id }) => user_id))
}

/**
 * The touched accounts that have an open limit order that its reservation does not cover, before (`uncovered`) or after the chunk, with at most
 * 500 orders each: both sides if the chunk changes the position, otherwise the side that reduces it.
 */
export async function loadPositionedAccounts(
  tx: Tx,
  marketId: number,
  { touched, moved, uncovered: after }: TouchedAccounts,
  uncovered: ReadonlySet<number>,
): Promise<readonly PositionedAccount[]> {
  const positioned = new Set([...after, ...[...uncovered].filter((userId) => touched.has(userId))])
  if (positioned.size === 0) return []
  const { rows } = await sql<PositionedAccount>`
    with accounts as (
      select a.user_id, coalesce(p.size + p.pending, 0) as matched
      from unnest(${[...positioned]}::bigint[]) a (user_id)
      left join read.positions p on p.user_id = a.user_id and p.market_id = ${marketId}
    )
    select a.user_id, a.matched, coalesce((
      select json_agg(to_json(standing)) from (
        select order_id, seq, side, price, quantity, filled, settling, openable, reduce_only from read.orders o
        where o.user_id = a.user_id and o.market_id = ${marketId}
          and o.status = 'OPEN' and o.status_reason is null and o.price > 0 and o.quantity > o.filled + o.settling
          and (a.user_id = any(${[...moved]}::bigint[]) or o.side = case when a.matched > 0 then 'SHORT' when a.matched < 0 then 'LONG' end)
      ) standing
    ), '[]') as orders
    from accounts a
  `.execute(tx)
  return rows
}

export const writesOf = (changes: OrderChanges): ChunkWrites => ({
  clauses: clausesOf(changes),
  async before(tx) {
    for (const removed of changes.removedEvents) await removeEvents(tx, removed)
    for (const part of changes.removedFills) await removeFills(tx, part)
  },
  last: emptyLevels(changes.levels),
})

/** The items that match, then the items that do not. */
function partition<Item>(items: readonly Item[], matches: (item: Item) => boolean): [Item[], Item[]] {
  return [items.filter(matches), items.filter((item) => !matches(item))]
}

function clausesOf({ events, orders, fills, positions, levels }: OrderChanges): WriteClause[] {
  const numbered = events.map((event, at) => ({ ...event, arrival: at + 1 - events.length }))
  const [created, changed] = partition(numbered, ({ kind }) => kind === 'CREATED')
  const arrivals = new Map(created.map(({ order_id, arrival }) => [order_id, arrival]))
  const [placed, known] = partition(orders, ({ order_id }) => arrivals.has(order_id))
  const withArrivals = placed.map((order) => ({ ...order, arrival: arrivals.get(order.order_id) as number }))
  return [
    ORDERS.replace(known),
    FILLS.replace(fills.flat()),
    POSITIONS.replace(positions),
    LEVELS.add(levels),
    takeArrivals(events.length),
    ORDERS.insert(withArrivals, ARRIVED),
    ORDER_CHANGES.insert(changed, ARRIVED),
  ]
}

/** A row's `arrival` is relative to the chunk's last event: 0 for the last, -1 for the one before it. This adds the last number. */
const ARRIVED = { arrival: '(select last from arrivals) + arrival' }

/**
 * Reserves the chunk's arrival numbers and locks their counter until the transaction ends, so that events are numbered in the order
 * in which they become visible to readers.
 */
const takeArrivals = (count: number): WriteClause => ({
  name: 'arrivals',
  isShared: true,
  text: (first, condition) => `
    update read.arrivals set last = last + ($${first}::bigint[])[1] where ${condition} returning last
  `,
  parameters: [count > 0 ? `{${count}}` : '{}'],
})

/**
 * Numbers all events by time after a fill, which projects one shard after another. Inside a shard the journal's order decides. The
 * caller has locked the projection's place in every shard, so that no chunk runs meanwhile.
 */
export async function renumberEvents(tx: Tx): Promise<void> {
  await sql`
    with numbered as materialized (
      select shard, seq, place, order_id, kind, row_number() over (order by latest, shard, seq, place) as number from (
        select *, max(at) over (partition by shard order by seq, place) as latest from read.order_events
      ) by_time
    ), created as (
      update read.orders o set arrival = numbered.number from numbered
      where numbered.kind = 'CREATED' and numbered.order_id = o.order_id
    ), changed as (
      update read.order_changes e set arrival = numbered.number from numbered
      where (numbered.shard, numbered.seq, numbered.place) = (e.shard, e.seq, e.place)
    )
    update read.arrivals set last = (select count(*) from numbered)
  `.execute(tx)
}

async function removeFills(tx: Tx, { market_id, batch_id, part }: PartRef): Promise<void> {
  await sql`
    delete from read.fills where market_id = ${market_id} and batch_id = ${batch_id} and part = ${part}
  `.execute(tx)
}

async function removeEvents(tx: Tx, { order_ids, source, reopened }: SourceEvents): Promise<void> {
  await sql`
    delete from read.order_changes
    where order_id = any(${order_ids})
      and (details @> ${JSON.stringify(source)}::jsonb or order_id = any(${reopened}) and kind = any(${TERMINAL_STATUSES}))
  `.execute(tx)
}

/** Removes levels without orders: only those whose order count the chunk lowered can be empty. */
function emptyLevels(levels: readonly LevelDelta[]): WriteClause[] {
  const lowered = levels.filter(({ order_count }) => order_count < 0)
  if (lowered.length === 0) return []
  const text = (first: number): string => `
    delete from read.book_levels using json_to_recordset($${first}::json)
      as lowered (market_id integer, side text, price bigint)
    where book_levels.market_id = lowered.market_id and book_levels.side = lowered.side
      and book_levels.price = lowered.price and book_levels.order_count = 0
  `
  return [{ name: '"empty levels"', text, parameters: [JSON.stringify(lowered)] }]
}
