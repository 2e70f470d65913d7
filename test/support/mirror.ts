/**
 * Accounts and positions of an engine in the test's process, as tables: tests state them before the engine begins, and
 * read them after its decisions. The exchange has them in memory and in the read model. The rows of live orders, which
 * the exchange writes seldom, follow each change; so do the sums over their fills, which the exchange does not write.
 */
import { type Generated, type Kysely, type Selectable, sql } from 'kysely'
import type { Db, Tx } from '../../db/client.ts'
import type { Database } from '../../db/schema.ts'
import { stateTable } from '../../db/state-tables.ts'
import { ordersTable } from '../../db/written-tables.ts'
import type { ExchangeState } from '../../domain/exchange/state.ts'
import { orderIdOf } from '../../domain/orders/order.ts'
import type { Position } from '../../domain/positions/position.ts'
import type { Address, Millis, Quote, Steps, UserId } from '../../domain/units.ts'
import type { WrittenMark } from '../../keeper/engine/tables/changes.ts'
import { columnsIn } from '../../keeper/engine/tables/orders.ts'
import { following, keeping, keepingByKey, type TablePart } from '../../keeper/engine/tables/part.ts'
import type { PartFactory } from '../../keeper/engine/tables/table-writer.ts'

export interface MirroredAccountsTable {
  user_id: number
  free: Generated<bigint>
  pending_withdrawal: Generated<bigint>
  reserved: Generated<bigint>
}

/** Mined columns, and mined and unsettled fills together in `matched_*`. */
export interface MirroredPositionsTable {
  user_id: number
  market_id: number
  size: Generated<number>
  entry_notional: Generated<bigint>
  folded_margin: Generated<bigint>
  leverage: Generated<number>
  matched_size: Generated<number>
  matched_entry_notional: Generated<bigint>
  matched_folded_margin: Generated<bigint>
  matched_leverage: Generated<number>
}

interface WithMirror extends Database {
  accounts: MirroredAccountsTable
  positions: MirroredPositionsTable
}

/** Test databases search this schema after `public`. */
export const MIRROR_SCHEMA = `
  create schema mirror;
  create table mirror.accounts (
    user_id bigint primary key references users,
    free numeric(78, 0) not null default 0,
    pending_withdrawal numeric(78, 0) not null default 0,
    reserved numeric(78, 0) not null default 0 check (reserved >= 0)
  );
  create table mirror.positions (
    user_id bigint references users,
    market_id integer references markets,
    size bigint not null default 0,
    entry_notional numeric(78, 0) not null default 0,
    folded_margin numeric(78, 0) not null default 0,
    leverage integer not null default 0,
    matched_size bigint not null default 0,
    matched_entry_notional numeric(78, 0) not null default 0,
    matched_folded_margin numeric(78, 0) not null default 0,
    matched_leverage integer not null default 0,
    primary key (user_id, market_id)
  );
  create table mirror.order_sums (
    order_id text primary key,
    filled_value numeric(78, 0) not null,
    fee numeric(78, 0) not null
  );
  grant usage on schema mirror to public;
  grant all on all tables in schema mirror to public;
`

/** The database with both tables. */
export const withMirror = (db: Db | Tx): Kysely<WithMirror> => db as unknown as Kysely<WithMirror>

export const matchedPosition = (
  row: Pick<
    Selectable<MirroredPositionsTable>,
    'matched_size' | 'matched_entry_notional' | 'matched_folded_margin' | 'matched_leverage'
  >,
): Position => ({
  size: row.matched_size as Steps,
  entryNotional: row.matched_entry_notional as Quote,
  foldedMargin: row.matched_folded_margin as Quote,
  leverage: row.matched_leverage,
})

export const accountIn = (db: Db, userId: number): Promise<Selectable<MirroredAccountsTable>> =>
  withMirror(db).selectFrom('accounts').selectAll().where('user_id', '=', userId).executeTakeFirstOrThrow()

/** Free balances by address. */
export async function freeInMirror(db: Db): Promise<Map<Address, bigint>> {
  const rows = await withMirror(db)
    .selectFrom('accounts')
    .innerJoin('users', 'users.user_id', 'accounts.user_id')
    .select(['address', 'free'])
    .execute()
  return new Map(rows.map(({ address, free }) => [address as Address, free]))
}

const accountsTable = stateTable({
  name: 'accounts' as never,
  key: { user_id: 'bigint' },
  changing: { free: 'numeric', pending_withdrawal: 'numeric', reserved: 'numeric' },
})

const positionsTable = stateTable({
  name: 'positions' as never,
  key: { user_id: 'bigint', market_id: 'integer' },
  changing: {
    size: 'bigint',
    entry_notional: 'numeric',
    folded_margin: 'numeric',
    leverage: 'integer',
    matched_size: 'bigint',
    matched_entry_notional: 'numeric',
    matched_folded_margin: 'numeric',
    matched_leverage: 'integer',
  },
})

const orderSumsTable = stateTable({
  name: 'order_sums' as never,
  key: { order_id: 'text' },
  changing: { filled_value: 'numeric', fee: 'numeric' },
})

const accounts = (mark: WrittenMark, state: ExchangeState): TablePart =>
  following(
    mark,
    state.accounts,
    {
      keyOf: ({ userId }) => userId,
      columnsOf: ({ userId, free, pendingWithdrawal, reserved }) => ({
        user_id: userId,
        free,
        pending_withdrawal: pendingWithdrawal,
        reserved,
      }),
    },
    (rows) => keeping(accountsTable, rows),
  )

const positions = (mark: WrittenMark, state: ExchangeState): TablePart =>
  following(
    mark,
    state.positions,
    {
      keyOf: ({ userId, marketId }) => `${userId}-${marketId}`,
      columnsOf: (row) => ({
        user_id: row.userId,
        market_id: row.marketId,
        size: row.size,
        entry_notional: row.entryNotional,
        folded_margin: row.foldedMargin,
        leverage: row.leverage,
        matched_size: row.matchedSize,
        matched_entry_notional: row.matchedEntryNotional,
        matched_folded_margin: row.matchedFoldedMargin,
        matched_leverage: row.matchedLeverage,
      }),
    },
    (rows) => keepingByKey(positionsTable, rows),
  )

const orders = (mark: WrittenMark, state: ExchangeState): TablePart =>
  following(
    mark,
    state.orders,
    {
      keyOf: ({ marketId, accepted }) => `${marketId}-${accepted}`,
      columnsOf: columnsIn(state),
    },
    (rows) => keeping(ordersTable, rows),
  )

const orderSums = (mark: WrittenMark, state: ExchangeState): TablePart =>
  following(
    mark,
    state.orders,
    {
      keyOf: ({ marketId, accepted }) => `${marketId}-${accepted}`,
      columnsOf: ({ marketId, accepted, filledValue, fee }) => ({
        order_id: orderIdOf(marketId, accepted),
        filled_value: filledValue,
        fee,
      }),
    },
    (rows) => keeping(orderSumsTable, rows),
  )

export const MIRROR_PARTS: readonly PartFactory[] = [accounts, positions, orders, orderSums]

/** Brings the read model's balances and open positions in step with the mirror, for tests without a projector. */
export async function projectMirror(db: Db): Promise<void> {
  await sql`
    insert into read.balances (user_id, free, reserved, pending_withdrawal)
    select user_id, free, reserved, pending_withdrawal from accounts
    on conflict (user_id) do update
      set free = excluded.free, reserved = excluded.reserved, pending_withdrawal = excluded.pending_withdrawal
  `.execute(db)
  await sql`
    insert into read.positions (user_id, market_id, size, entry_notional, folded_margin, leverage, pending, updated_at)
    select user_id, market_id, size, entry_notional, folded_margin, leverage, matched_size - size, 0 from positions
    on conflict (user_id, market_id) do update
      set size = excluded.size, entry_notional = excluded.entry_notional, folded_margin = excluded.folded_margin,
        leverage = excluded.leverage, pending = excluded.pending
  `.execute(db)
  await markProjected(db)
}

/** The read model counts as having every row of the journals that orders and positions follow. */
export const markProjected = (db: Db) =>
  sql`
    insert into read.places (shard, projection, epoch, version, seq)
    select shard, 'orders', epoch, 1, head from shards
    on conflict (shard, projection) do update set seq = excluded.seq
  `.execute(db)

/** Takes users without a row, with their balances, into a state that has no rows yet. */
export async function adoptUsers(db: Db, state: ExchangeState): Promise<void> {
  const users = await withMirror(db)
    .selectFrom('users')
    .innerJoin('accounts', 'accounts.user_id', 'users.user_id')
    .select(['users.user_id', 'address', 'created_at', 'free', 'pending_withdrawal'])
    .where(
      sql<boolean>`not exists (
        select from journal where shard = 'accounts' and row ->> 'kind' = 'user_created' and (row ->> 'user_id')::bigint = users.user_id
      )`,
    )
    .execute()
  for (const { user_id, address, created_at, free, pending_withdrawal } of users) {
    const userId = user_id as UserId
    state.users.put({ userId, address: address as Address, createdAt: created_at as Millis })
    state.accounts.put({
      userId,
      free: free as Quote,
      pendingWithdrawal: pending_withdrawal as Quote,
      reserved: 0n as Quote,
    })
  }
  state.core.undo.clear()
}
