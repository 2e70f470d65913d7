/** Loads what a chunk touches and writes what it changed. */
import { CompiledQuery, sql } from 'kysely'
import type { Tx } from '../../db/client.ts'
import type { LoadedRows, ReadChanges, TouchedKeys } from './chunk-changes.ts'
import {
  BALANCES,
  BATCHES,
  FILLS,
  LEVELS,
  MARKETS,
  ORDER_CHANGES,
  ORDERS,
  POSITIONS,
  USERS,
  type Write,
} from './read-table.ts'
import type { ReadBatch } from './tables/batches.ts'
import type { LevelDelta } from './tables/book-levels.ts'
import { partKey, type ReadFill } from './tables/fills.ts'
import type { PartEvents, PartRef } from './tables/order-events.ts'
import type { ReadOrder } from './tables/orders.ts'
import type { ReadPosition } from './tables/positions.ts'

/** What the read model holds of the subjects in one market. */
export async function loadRows(tx: Tx, marketId: number, touched: TouchedKeys): Promise<LoadedRows> {
  return {
    orders: await loadOrders(tx, touched.orders),
    fills: await loadFills(tx, marketId, touched.fills),
    positions: await loadPositions(tx, marketId, touched.positions),
    batches: await loadBatches(tx, marketId, touched.batches),
    markets: await loadMarket(tx, marketId, touched.markets),
  }
}

async function loadOrders(tx: Tx, ids: ReadonlySet<string>): Promise<LoadedRows['orders']> {
  if (ids.size === 0) return new Map()
  const rows = await sql<ReadOrder>`select * from read.orders where order_id = any(${[...ids]})`.execute(tx)
  return new Map(rows.rows.map((order) => [order.order_id, order]))
}

async function loadFills(tx: Tx, marketId: number, parts: ReadonlySet<string>): Promise<LoadedRows['fills']> {
  if (parts.size === 0) return new Map()
  const keys = [...parts].map((key) => key.split('-').map(Number))
  const { rows } = await sql<ReadFill>`
    select fills.* from read.fills
    join unnest(${keys.map(([batch]) => batch)}::bigint[], ${keys.map(([, part]) => part)}::integer[])
      as wanted (batch_id, part) using (batch_id, part)
    where market_id = ${marketId}
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

async function loadBatches(
  tx: Tx,
  marketId: number,
  ids: ReadonlySet<string>,
): Promise<LoadedRows['batches']> {
  if (ids.size === 0) return new Map()
  const { rows } = await sql<ReadBatch>`
    select * from read.batches where market_id = ${marketId} and batch_id = any(${[...ids]}::bigint[])
  `.execute(tx)
  return new Map(rows.map((batch) => [String(batch.batch_id), batch]))
}

async function loadMarket(
  tx: Tx,
  marketId: number,
  ids: ReadonlySet<string>,
): Promise<LoadedRows['markets']> {
  if (ids.size === 0) return new Map()
  const rows = await tx.selectFrom('read.markets').selectAll().where('market_id', '=', marketId).execute()
  return new Map(rows.map((market) => [String(market.market_id), market]))
}

/** How far a shard is projected. */
export interface ProjectedTo {
  readonly shard: string
  readonly seq: number
}

/**
 * Writes a chunk's changes and where its shard stands now, in one statement: most of what a chunk of few rows costs is statements. The
 * rows that other shards write too, balances and then the count of events, are locked in this order by everyone. What a crash takes
 * back of the read model is projected again, so the commit need not wait for the disk.
 */
export async function saveChanges(tx: Tx, changes: ReadChanges, { shard, seq }: ProjectedTo): Promise<void> {
  for (const part of changes.removedEvents) await removeEvents(tx, part)
  for (const part of changes.removedFills) await removeFills(tx, part)
  const writes = writesOf(changes).filter(({ arrays }) => arrays.some((array) => array !== '{}'))
  const values: unknown[] = [shard, seq]
  const parts = writes.map(({ name, text, arrays }) => {
    const part = `${name} as (${text(values.length + 1)})`
    values.push(...arrays)
    return part
  })
  const text = `
    ${parts.length > 0 ? `with ${parts.join()}` : ''}
    update read.projection set seq = $2::bigint from (select set_config('synchronous_commit', 'off', true)) unhurried
    where shard = $1::text
  `
  await tx.executeQuery(CompiledQuery.raw(text, values))
  await removeEmptyLevels(tx, changes.levels)
}

/** Those that are so, and those that are not. */
function split<Item>(items: readonly Item[], isSo: (item: Item) => boolean): [Item[], Item[]] {
  return [items.filter(isSo), items.filter((item) => !isSo(item))]
}

function writesOf(changes: ReadChanges): Write[] {
  const { events, orders, balances } = changes
  const numbered = events.map((event, at) => ({ ...event, arrival: at + 1 - events.length }))
  const [created, changed] = split(numbered, ({ kind }) => kind === 'CREATED')
  const places = new Map(created.map(({ order_id, arrival }) => [order_id, arrival]))
  const [placed, known] = split(orders, ({ order_id }) => places.has(order_id))
  const withPlaces = placed.map((order) => ({ ...order, arrival: places.get(order.order_id) as number }))
  return [
    USERS.replacing(changes.users),
    MARKETS.replacing(changes.markets),
    ORDERS.replacing(known),
    FILLS.replacing(changes.fills.flat()),
    POSITIONS.replacing(changes.positions),
    BATCHES.replacing(changes.batches),
    LEVELS.adding(changes.levels),
    BALANCES.adding(balances),
    takingArrivals(events.length, balances.length > 0),
    ORDERS.inserting(withPlaces, ARRIVED),
    ORDER_CHANGES.inserting(changed, ARRIVED),
  ]
}

/** Of rows whose `arrival` says how many events of the chunk come behind them: 0 for the last, -1 for the one before. */
const ARRIVED = { arrival: '(select last from arrivals) + arrival' }

/**
 * Takes the chunk's numbers, and the lock on them until the transaction ends, so that events are numbered in the order in which readers
 * come to see them.
 */
const takingArrivals = (count: number, isBehindBalances: boolean): Write => ({
  name: 'arrivals',
  text: (first) => `
    update read.arrivals set last = last + ($${first}::bigint[])[1]
    ${isBehindBalances ? 'where (select count(*) from "set read.balances") > 0' : ''} returning last
  `,
  arrays: [count > 0 ? `{${count}}` : '{}'],
})

/**
 * Numbers all events as they happened: a rebuild goes through one shard after the other. Inside a shard the log says what came first. It
 * waits for the chunks under way, which hold their shards' places, and holds back others: they lock the rows that it is to number.
 */
export async function renumberEvents(tx: Tx): Promise<void> {
  await sql`select from read.projection order by shard for update`.execute(tx)
  await sql`
    with told as materialized (
      select shard, seq, place, order_id, kind, row_number() over (order by reached, shard, seq, place) as number from (
        select *, max(at) over (partition by shard order by seq, place) as reached from read.order_events
      ) timed
    ), created as (
      update read.orders o set arrival = told.number from told where told.kind = 'CREATED' and told.order_id = o.order_id
    ), changed as (
      update read.order_changes e set arrival = told.number from told
      where (told.shard, told.seq, told.place) = (e.shard, e.seq, e.place)
    )
    update read.arrivals set last = (select count(*) from told)
  `.execute(tx)
}

async function removeFills(tx: Tx, { market_id, batch_id, part }: PartRef): Promise<void> {
  await sql`
    delete from read.fills where market_id = ${market_id} and batch_id = ${batch_id} and part = ${part}
  `.execute(tx)
}

async function removeEvents(tx: Tx, { order_ids, ...part }: PartEvents): Promise<void> {
  await sql`
    delete from read.order_changes
    where order_id = any(${order_ids}) and details @> ${JSON.stringify(part)}::jsonb
  `.execute(tx)
}

/** Only levels that a chunk lowered can be empty. */
async function removeEmptyLevels(tx: Tx, levels: readonly LevelDelta[]): Promise<void> {
  const lowered = levels.filter(({ order_count }) => order_count < 0)
  if (lowered.length === 0) return
  await sql`
    delete from read.book_levels using json_to_recordset(${JSON.stringify(lowered)}::json)
      as lowered (market_id integer, side text, price bigint)
    where book_levels.market_id = lowered.market_id and book_levels.side = lowered.side
      and book_levels.price = lowered.price and book_levels.order_count = 0
  `.execute(tx)
}
