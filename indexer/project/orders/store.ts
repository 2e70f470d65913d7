/** The SQL of the projection `orders`: loads the rows that a chunk touches and writes the rows that it changed. */
import { sql } from 'kysely'
import type { Tx } from '../../../db/client.ts'
import { tickStepValue } from '../../../domain/market/market.ts'
import { fromStoredSpec } from '../../../domain/market/stored-spec.ts'
import { TERMINAL_STATUSES } from '../../../domain/orders/order-state.ts'
import type { ChunkWrites } from '../projection.ts'
import type { WriteClause } from '../read-table.ts'
import {
  EMPTIED_LEVELS,
  LEVELS,
  type LevelDelta,
  type PositionedAccount,
  type PositionedKey,
} from '../tables/book-levels.ts'
import { changeFills, changePartsOfFills, FILLS, partKey, type ReadFill } from '../tables/fills.ts'
import { ORDER_CHANGES, type PartRef, type SourceEvents } from '../tables/order-events.ts'
import { changeOrders, ORDERS, type ReadOrder } from '../tables/orders.ts'
import { POSITIONS, type ReadPosition } from '../tables/positions.ts'
import type { LoadedRows, OrderChanges, TouchedKeys } from './changes.ts'

/** Keys that the rows of one market touch. */
interface MarketKeys {
  readonly marketId: number
  readonly keys: TouchedKeys
}

/** A row's key in each market: two columns of a table expression. */
function pairsOf<Key>(markets: readonly { readonly marketId: number; readonly keys: Iterable<Key> }[]): {
  readonly marketIds: number[]
  readonly keys: Key[]
} {
  const pairs = markets.flatMap(({ marketId, keys }) => [...keys].map((key) => ({ marketId, key })))
  return { marketIds: pairs.map(({ marketId }) => marketId), keys: pairs.map(({ key }) => key) }
}

/** Loads the touched rows of all markets with one statement. The result returns the rows of one market. */
export async function loadRows(
  tx: Tx,
  markets: readonly MarketKeys[],
): Promise<(marketId: number) => LoadedRows> {
  const of = <Name extends keyof TouchedKeys>(name: Name) =>
    markets.map(({ marketId, keys }) => ({ marketId, keys: keys[name] }))
  const [orders, fills, positions] = await Promise.all([
    loadOrders(tx, pairsOf(of('orders')).keys as string[]),
    loadFills(tx, pairsOf(of('fills'))),
    loadPositions(tx, pairsOf(of('positions'))),
  ])
  const ordersOf = Map.groupBy(orders, ({ market_id }) => market_id)
  const fillsOf = Map.groupBy(fills, ({ market_id }) => market_id)
  const positionsOf = Map.groupBy(positions, ({ market_id }) => market_id)
  return (marketId) => ({
    orders: new Map(ordersOf.get(marketId)?.map((order) => [order.order_id, order])),
    fills: Map.groupBy(fillsOf.get(marketId) ?? [], ({ batch_id, part }) => partKey(batch_id, part)),
    positions: new Map(positionsOf.get(marketId)?.map((position) => [String(position.user_id), position])),
  })
}

async function loadOrders(tx: Tx, ids: readonly string[]): Promise<readonly ReadOrder[]> {
  if (ids.length === 0) return []
  return (await sql<ReadOrder>`select * from read.orders where order_id = any(${ids})`.execute(tx)).rows
}

/** The key of each row in its market. */
type Pairs = ReturnType<typeof pairsOf<string>>

async function loadFills(tx: Tx, { marketIds, keys }: Pairs): Promise<readonly ReadFill[]> {
  if (keys.length === 0) return []
  const parts = keys.map((key) => key.split('-').map(Number))
  // One lookup per part, whatever the planner assumes: a plan made while the table was small would read all fills of
  // the market.
  const { rows } = await sql<ReadFill>`
    select fills.*
    from unnest(
      ${marketIds}::integer[], ${parts.map(([batch]) => batch)}::bigint[], ${parts.map(([, part]) => part)}::integer[]
    ) as wanted (market_id, batch_id, part)
    cross join lateral (
      select * from read.fills
      where market_id = wanted.market_id and batch_id = wanted.batch_id and part = wanted.part
      offset 0
    ) fills
  `.execute(tx)
  return rows
}

async function loadPositions(tx: Tx, { marketIds, keys }: Pairs): Promise<readonly ReadPosition[]> {
  if (keys.length === 0) return []
  const { rows } = await sql<ReadPosition>`
    select stored.* from unnest(${marketIds}::integer[], ${keys}::bigint[]) as touched (market_id, user_id)
    cross join lateral (
      select * from read.positions where user_id = touched.user_id and market_id = touched.market_id offset 0
    ) stored
  `.execute(tx)
  return rows
}

/**
 * Touched accounts with an open limit order that its reservation did not cover before the chunk. For most accounts this
 * costs one lookup in a partial index. The result is by market.
 */
export async function loadUncovered(
  tx: Tx,
  markets: readonly MarketKeys[],
): Promise<(marketId: number) => ReadonlySet<number>> {
  const accounts = pairsOf(markets.map(({ marketId, keys }) => ({ marketId, keys: keys.accounts })))
  const orders = markets.flatMap(({ keys }) => [...keys.unowned])
  if (orders.length === 0 && accounts.keys.length === 0) return () => new Set()
  const { rows } = await sql<{ market_id: number; user_id: number }>`
    select found.market_id, found.user_id
    from (
      select market_id, user_id from unnest(${accounts.marketIds}::integer[], ${accounts.keys}::bigint[]) as named (market_id, user_id)
      union select market_id, user_id from read.orders where order_id = any(${orders}::text[])
    ) touched
    cross join lateral (
      select market_id, user_id from read.orders
      where market_id = touched.market_id and user_id = touched.user_id
        and uncovered > 0 and status = 'OPEN' and status_reason is null and price > 0
      limit 1
    ) found
  `.execute(tx)
  const users = Map.groupBy(rows, ({ market_id }) => market_id)
  return (marketId) => new Set(users.get(marketId)?.map(({ user_id }) => user_id))
}

/**
 * Touched accounts with a position, each with at most 500 orders: of both sides if the chunk changes the position,
 * otherwise of the reducing side. The result is by market.
 */
export async function loadPositionedAccounts(
  tx: Tx,
  markets: readonly { readonly marketId: number; readonly accounts: readonly PositionedKey[] }[],
): Promise<(marketId: number) => readonly PositionedAccount[]> {
  const { marketIds, keys } = pairsOf(markets.map(({ marketId, accounts }) => ({ marketId, keys: accounts })))
  if (keys.length === 0) return () => []
  const { rows } = await sql<PositionedAccount & { readonly market_id: number }>`
    with accounts as (
      select a.*, coalesce(p.size + p.pending, 0) as matched
      from unnest(
        ${marketIds}::integer[], ${keys.map(({ userId }) => userId)}::bigint[], ${keys.map(({ isMoved }) => isMoved)}::boolean[]
      ) a (market_id, user_id, is_moved)
      left join read.positions p on p.user_id = a.user_id and p.market_id = a.market_id
    )
    select a.market_id, a.user_id, a.matched, coalesce((
      select json_agg(to_json(standing)) from (
        select order_id, seq, side, price, quantity, filled, settling, openable, reduce_only from read.orders o
        where o.user_id = a.user_id and o.market_id = a.market_id
          and o.status = 'OPEN' and o.status_reason is null and o.price > 0 and o.quantity > o.filled + o.settling
          and (a.is_moved or o.side = case when a.matched > 0 then 'SHORT' when a.matched < 0 then 'LONG' end)
      ) standing
    ), '[]') as orders
    from accounts a
  `.execute(tx)
  const accountsOf = Map.groupBy(rows, ({ market_id }) => market_id)
  return (marketId) => accountsOf.get(marketId) ?? []
}

/**
 * Wei of one tick of one step, by market. Tick and step of a listed market never change, so the table of the write side gives live projection and
 * rebuild the same values.
 */
export async function loadUnits(
  tx: Tx,
  markets: readonly { readonly marketId: number }[],
): Promise<ReadonlyMap<number, bigint>> {
  if (markets.length === 0) return new Map()
  const rows = await tx
    .selectFrom('markets')
    .select(['market_id', 'spec'])
    .where(
      'market_id',
      'in',
      markets.map(({ marketId }) => marketId),
    )
    .execute()
  return new Map(rows.map(({ market_id, spec }) => [market_id, tickStepValue(fromStoredSpec(spec))]))
}

/** Combines the writes of all markets. */
export function writesOf(markets: readonly OrderChanges[]): ChunkWrites {
  return {
    clauses: clausesOf(markets),
    async before(tx) {
      for (const removed of markets.flatMap(({ removedEvents }) => removedEvents))
        await removeEvents(tx, removed)
      for (const part of markets.flatMap(({ removedFills }) => removedFills)) await removeFills(tx, part)
    },
  }
}

/** Splits the items into matching and other items. */
function partition<Item>(items: readonly Item[], matches: (item: Item) => boolean): [Item[], Item[]] {
  return [items.filter(matches), items.filter((item) => !matches(item))]
}

function clausesOf(markets: readonly OrderChanges[]): WriteClause[] {
  const events = markets.flatMap((market) => market.events)
  const orders = markets.flatMap((market) => market.orders)
  const numbered = events.map((event, at) => ({ ...event, arrival: at + 1 - events.length }))
  const [created, changed] = partition(numbered, ({ kind }) => kind === 'CREATED')
  const arrivals = new Map(created.map(({ order_id, arrival }) => [order_id, arrival]))
  const [placed, known] = partition(orders, ({ order_id }) => arrivals.has(order_id))
  const withArrivals = placed.map((order) => ({ ...order, arrival: arrivals.get(order.order_id) as number }))
  return [
    changeOrders(known),
    FILLS.insert(markets.flatMap(({ fillWrites }) => fillWrites.added)),
    changeFills(markets.flatMap(({ fillWrites }) => fillWrites.changed)),
    changePartsOfFills(markets.flatMap(({ fillWrites }) => fillWrites.parts)),
    POSITIONS.replace(markets.flatMap(({ positions }) => positions)),
    ...levelClauses(markets.flatMap(({ levels }) => levels)),
    takeArrivals(events.length),
    ORDERS.insert(withArrivals, ARRIVED),
    ORDER_CHANGES.insert(changed, ARRIVED),
  ]
}

/**
 * Adds the last arrival number to a row's relative `arrival`: 0 for the chunk's last event, -1 for the previous event.
 */
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
 * Numbers all events by time, and by journal order within a shard, after a fill, which projects shard after shard. The
 * caller has locked the projection in every shard, so no chunk runs.
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

/** Deletes the levels that lose their last order, and changes all other levels: a statement may change a row only once. */
function levelClauses(levels: readonly LevelDelta[]): WriteClause[] {
  if (levels.length === 0) return []
  const changed = LEVELS.add(levels)
  const isLeft = `not exists (
    select from ${EMPTIED_LEVELS} emptied
    where emptied.market_id = input.market_id and emptied.side = input.side and emptied.price = input.price
  )`
  return [
    {
      name: EMPTIED_LEVELS,
      text: (first) => `
        delete from read.book_levels stored
        using json_to_recordset($${first}::json) as lowered (market_id integer, side text, price bigint, order_count integer)
        where stored.market_id = lowered.market_id and stored.side = lowered.side and stored.price = lowered.price
          and stored.order_count + lowered.order_count = 0
        returning stored.market_id, stored.side, stored.price
      `,
      parameters: [JSON.stringify(levels.filter(({ order_count }) => order_count < 0))],
    },
    {
      ...changed,
      text: (first, condition) => changed.text(first, `${condition} and ${isLeft}`),
    },
  ]
}
