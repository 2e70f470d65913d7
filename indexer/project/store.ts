/** Loads what a chunk touches and writes what it changed: one statement per table, however many rows. */
import { CompiledQuery, sql } from 'kysely'
import type { Tx } from '../db/client.ts'
import type { BalanceDelta } from './balances.ts'
import type { ReadBatch } from './batches.ts'
import type { LevelDelta } from './book-levels.ts'
import { partKey, type ReadFill } from './fills.ts'
import type { ReadMarket } from './markets.ts'
import type { EventsOf, PartOf, ReadOrderEvent } from './order-events.ts'
import type { ReadOrder } from './orders.ts'
import type { ReadPosition } from './positions.ts'
import type { ReadChanges, Subjects, Touched } from './project.ts'
import type { ReadUser } from './users.ts'

type PgType = 'bigint' | 'integer' | 'numeric' | 'text' | 'boolean' | 'jsonb'

/** A table of the `read` schema: its columns, and those that identify a row. */
interface Shape<Row> {
  readonly table: string
  readonly key: readonly (keyof Row & string)[]
  readonly columns: { readonly [Column in keyof Row]: PgType }
}

/** A shape with its statements, which take one array per column: Postgres reads those in half the time that it takes for JSON. */
interface Table<Row> {
  readonly columns: readonly (keyof Row)[]
  /** Inserts rows that do not exist. */
  readonly inserting: string
  /** Inserts rows, or sets every other column of a row that exists. */
  readonly replacing: string
  /** Inserts rows, or adds to every other column of a row that exists. */
  readonly adding: string
}

function tableOf<Row>({ table, key, columns }: Shape<Row>): Table<Row> {
  const names = Object.keys(columns)
  const list = (some: readonly string[]): string => some.map((name) => `"${name}"`).join()
  const arrays = Object.values<PgType>(columns).map((type, at) => `$${at + 1}::${type}[]`)
  const others = names.filter((name) => !(key as readonly string[]).includes(name))
  const inserting = `insert into ${table} as kept (${list(names)}) select * from unnest(${arrays.join()})`
  const merging = (resolve: (name: string) => string): string => `
    ${inserting}
    on conflict (${list(key)}) do update set ${others.map((name) => `"${name}" = ${resolve(name)}`).join()}
  `
  return {
    columns: names as (keyof Row)[],
    inserting,
    replacing: merging((name) => `excluded."${name}"`),
    adding: merging((name) => `kept."${name}" + excluded."${name}"`),
  }
}

const USERS = tableOf<ReadUser>({
  table: 'read.users',
  key: ['user_id'],
  columns: { user_id: 'bigint', address: 'text', created_at: 'bigint' },
})

const MARKETS = tableOf<ReadMarket>({
  table: 'read.markets',
  key: ['market_id'],
  columns: {
    market_id: 'integer',
    symbol: 'text',
    kind: 'text',
    spec: 'jsonb',
    oracle_price: 'numeric',
    oracle_at: 'bigint',
    mark_price: 'numeric',
    last_price: 'bigint',
    last_batch_id: 'bigint',
  },
})

const ORDERS = tableOf<ReadOrder>({
  table: 'read.orders',
  key: ['order_id'],
  columns: {
    order_id: 'text',
    market_id: 'integer',
    seq: 'bigint',
    user_id: 'bigint',
    maker: 'text',
    signer: 'text',
    hash: 'text',
    salt: 'bigint',
    side: 'text',
    type: 'text',
    price: 'bigint',
    quantity: 'bigint',
    trigger: 'bigint',
    leverage: 'integer',
    reduce_only: 'boolean',
    expiration: 'bigint',
    status: 'text',
    status_reason: 'text',
    note: 'text',
    filled: 'bigint',
    filled_value: 'numeric',
    settling: 'bigint',
    fee: 'numeric',
    reserved: 'numeric',
    accepted_at: 'bigint',
    triggered: 'jsonb',
    updated_at: 'bigint',
    arrival: 'bigint',
  },
})

const ORDER_CHANGES = tableOf<ArrivedEvent>({
  table: 'read.order_changes',
  key: ['shard', 'seq', 'place'],
  columns: {
    shard: 'text',
    seq: 'bigint',
    place: 'integer',
    order_id: 'text',
    user_id: 'bigint',
    kind: 'text',
    details: 'jsonb',
    at: 'bigint',
    arrival: 'bigint',
  },
})

const FILLS = tableOf<ReadFill>({
  table: 'read.fills',
  key: ['fill_id'],
  columns: {
    fill_id: 'text',
    market_id: 'integer',
    batch_id: 'bigint',
    part: 'integer',
    place: 'integer',
    order_id: 'text',
    user_id: 'bigint',
    side: 'text',
    price: 'bigint',
    steps: 'bigint',
    taker_steps: 'bigint',
    fee: 'numeric',
    realized_pnl: 'numeric',
    status: 'text',
    tx_hash: 'text',
    block: 'bigint',
    action_id: 'bigint',
    matched_at: 'bigint',
    submitted_at: 'bigint',
    mined_at: 'bigint',
    confirmed_at: 'bigint',
    failed_at: 'bigint',
    failure: 'text',
    updated_at: 'bigint',
  },
})

const POSITIONS = tableOf<ReadPosition>({
  table: 'read.positions',
  key: ['user_id', 'market_id'],
  columns: {
    user_id: 'bigint',
    market_id: 'integer',
    size: 'bigint',
    entry_notional: 'numeric',
    folded_margin: 'numeric',
    leverage: 'integer',
    pending: 'bigint',
    realized_pnl: 'numeric',
    fees: 'numeric',
    updated_at: 'bigint',
  },
})

const BATCHES = tableOf<ReadBatch>({
  table: 'read.batches',
  key: ['market_id', 'batch_id'],
  columns: {
    market_id: 'integer',
    batch_id: 'bigint',
    as_of: 'bigint',
    price: 'bigint',
    lo: 'bigint',
    hi: 'bigint',
    volume: 'bigint',
    demand: 'bigint',
    supply: 'bigint',
    rule: 'text',
    parts: 'integer',
    settled_parts: 'integer',
    oracle_price: 'numeric',
  },
})

const BALANCES = tableOf<BalanceDelta>({
  table: 'read.balances',
  key: ['user_id'],
  columns: { user_id: 'bigint', free: 'numeric', reserved: 'numeric', pending_withdrawal: 'numeric' },
})

const LEVELS = tableOf<LevelDelta>({
  table: 'read.book_levels',
  key: ['market_id', 'side', 'price'],
  columns: {
    market_id: 'integer',
    side: 'text',
    price: 'bigint',
    quantity: 'bigint',
    order_count: 'integer',
  },
})

/** An element of an array in Postgres's own notation. */
function element(value: unknown): string {
  if (value === null) return 'NULL'
  if (typeof value === 'string') return `"${/["\\]/.test(value) ? value.replace(/["\\]/g, '\\$&') : value}"`
  if (typeof value === 'object') return element(JSON.stringify(value))
  return String(value)
}

async function write<Row>(
  tx: Tx,
  statement: string,
  columns: Table<Row>['columns'],
  rows: readonly Row[],
): Promise<void> {
  if (rows.length === 0) return
  const arrays = columns.map((name) => `{${rows.map((row) => element(row[name])).join()}}`)
  await tx.executeQuery(CompiledQuery.raw(statement, arrays))
}

const insertRows = <Row>(tx: Tx, { inserting, columns }: Table<Row>, rows: readonly Row[]): Promise<void> =>
  write(tx, inserting, columns, rows)

const replaceRows = <Row>(tx: Tx, { replacing, columns }: Table<Row>, rows: readonly Row[]): Promise<void> =>
  write(tx, replacing, columns, rows)

const addDeltas = <Row>(tx: Tx, { adding, columns }: Table<Row>, rows: readonly Row[]): Promise<void> =>
  write(tx, adding, columns, rows)

/** What the read model holds of the subjects in one market. */
export async function loadSubjects(tx: Tx, marketId: number, touched: Touched): Promise<Subjects> {
  return {
    orders: await loadOrders(tx, touched.orders),
    fills: await loadFills(tx, marketId, touched.fills),
    positions: await loadPositions(tx, marketId, touched.positions),
    batches: await loadBatches(tx, marketId, touched.batches),
    markets: await loadMarket(tx, marketId, touched.markets),
  }
}

async function loadOrders(tx: Tx, ids: ReadonlySet<string>): Promise<Subjects['orders']> {
  if (ids.size === 0) return new Map()
  const rows = await sql<ReadOrder>`select * from read.orders where order_id = any(${[...ids]})`.execute(tx)
  return new Map(rows.rows.map((order) => [order.order_id, order]))
}

async function loadFills(tx: Tx, marketId: number, parts: ReadonlySet<string>): Promise<Subjects['fills']> {
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
): Promise<Subjects['positions']> {
  if (users.size === 0) return new Map()
  const { rows } = await sql<ReadPosition>`
    select * from read.positions where market_id = ${marketId} and user_id = any(${[...users]}::bigint[])
  `.execute(tx)
  return new Map(rows.map((position) => [String(position.user_id), position]))
}

async function loadBatches(tx: Tx, marketId: number, ids: ReadonlySet<string>): Promise<Subjects['batches']> {
  if (ids.size === 0) return new Map()
  const { rows } = await sql<ReadBatch>`
    select * from read.batches where market_id = ${marketId} and batch_id = any(${[...ids]}::bigint[])
  `.execute(tx)
  return new Map(rows.map((batch) => [String(batch.batch_id), batch]))
}

async function loadMarket(tx: Tx, marketId: number, ids: ReadonlySet<string>): Promise<Subjects['markets']> {
  if (ids.size === 0) return new Map()
  const rows = await tx.selectFrom('read.markets').selectAll().where('market_id', '=', marketId).execute()
  return new Map(rows.map((market) => [String(market.market_id), market]))
}

/** Those that are so, and those that are not. */
function split<Item>(items: readonly Item[], isSo: (item: Item) => boolean): [Item[], Item[]] {
  return [items.filter(isSo), items.filter((item) => !isSo(item))]
}

/** Writes a chunk's changes. The tables always come in this order, so that two projectors never wait for each other in a circle. */
export async function saveChanges(tx: Tx, changes: ReadChanges): Promise<void> {
  const created = new Set(
    changes.events.flatMap(({ kind, order_id }) => (kind === 'CREATED' ? [order_id] : [])),
  )
  const [placed, known] = split(changes.orders, ({ order_id }) => created.has(order_id))
  await replaceRows(tx, USERS, changes.users)
  await replaceRows(tx, MARKETS, changes.markets)
  await replaceRows(tx, ORDERS, known)
  for (const part of changes.removedEvents) await removeEvents(tx, part)
  for (const part of changes.removedFills) await removeFills(tx, part)
  await replaceRows(tx, FILLS, changes.fills.flat())
  await replaceRows(tx, POSITIONS, changes.positions)
  await replaceRows(tx, BATCHES, changes.batches)
  await addDeltas(tx, LEVELS, changes.levels)
  await removeEmptyLevels(tx, changes.levels)
  await addDeltas(tx, BALANCES, changes.balances)
  await addEvents(tx, placed, changes.events)
}

interface ArrivedEvent extends ReadOrderEvent {
  readonly arrival: number
}

/**
 * One transaction at a time, so that events are numbered in the order in which readers come to see them. The last step: the lock is brief.
 * The row of a placed order is its first event.
 */
async function addEvents(
  tx: Tx,
  placed: readonly ReadOrder[],
  events: readonly ReadOrderEvent[],
): Promise<void> {
  if (events.length === 0) return
  const last = await takeArrivals(tx, events.length)
  const arrived = events.map((event, at) => ({ ...event, arrival: last - events.length + 1 + at }))
  const [created, changed] = split(arrived, ({ kind }) => kind === 'CREATED')
  const arrivals = new Map(created.map(({ order_id, arrival }) => [order_id, arrival]))
  const orders = placed.map((order) => ({ ...order, arrival: arrivals.get(order.order_id) as number }))
  await insertRows(tx, ORDERS, orders)
  await insertRows(tx, ORDER_CHANGES, changed)
}

/** Takes the next numbers, and the lock on them until the transaction ends. Returns the last. */
async function takeArrivals(tx: Tx, count: number): Promise<number> {
  const { last } = await tx
    .updateTable('read.arrivals')
    .set({ last: sql<number>`last + ${count}` })
    .returning('last')
    .executeTakeFirstOrThrow()
  return last
}

/** Numbers all events as they happened: a rebuild goes through one shard after the other. Inside a shard the log says what came first. */
export async function renumberEvents(tx: Tx): Promise<void> {
  await takeArrivals(tx, 0)
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

async function removeFills(tx: Tx, { market_id, batch_id, part }: PartOf): Promise<void> {
  await sql`
    delete from read.fills where market_id = ${market_id} and batch_id = ${batch_id} and part = ${part}
  `.execute(tx)
}

async function removeEvents(tx: Tx, { order_ids, ...part }: EventsOf): Promise<void> {
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
