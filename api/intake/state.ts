/** What a group is decided on: read under the market's lock and the accounts' locks, so the decision is final. */

import type { Selectable } from 'kysely'
import type pg from 'pg'
import { marketShard } from '../../domain/log.ts'
import type { MarketMode } from '../../domain/market.ts'
import type { Position } from '../../domain/position.ts'
import type { Quote, Steps } from '../../domain/units.ts'
import type { OrdersTable } from '../../indexer/db/schema.ts'
import type { ShardHead } from '../../indexer/db/shard-log.ts'
import type { Command } from './commands.ts'
import { pipelined } from './pipelined.ts'

export interface MarketNow {
  readonly mode: MarketMode
  readonly oraclePrice: bigint | null
  readonly oracleAt: number | null
  /** When the indexer last completed a pass over the chain's head. */
  readonly chainSeenAt: number | null
}

/** An account in this market. The fields that a decision changes are written back by it. */
export interface AccountNow {
  readonly free: bigint
  reserved: bigint
  readonly pendingWithdrawal: bigint
  readonly positionMargin: bigint
  /** Mined and unsettled together. */
  readonly position: Position
  /** Live orders, and what those of them that are in the book come to. */
  count: number
  plainLong: number
  plainShort: number
  openable: number
  /** Sum of openable steps x reserved price, in ticks. */
  openValue: bigint
  /** What the live orders hold back, settling fills included. */
  ordersReserved: bigint
}

export type StoredOrder = Selectable<OrdersTable> & {
  readonly filled_value: bigint
  readonly fee: bigint
  readonly updated_at: number
}

export interface GroupState {
  readonly head: ShardHead
  readonly market: MarketNow
  readonly accounts: Map<number, AccountNow>
  /** Orders that exist already, by hash and by `<maker>:<salt>`. */
  readonly byHash: Map<string, StoredOrder>
  readonly bySalt: Map<string, StoredOrder>
}

interface AccountRow extends Omit<AccountNow, 'position'> {
  readonly user_id: number
  readonly size: number
  readonly entry_notional: bigint
  readonly folded_margin: bigint
  readonly leverage: number
  readonly mode: MarketMode
  readonly oracle_price: bigint | null
  readonly oracle_at: number | null
  readonly chain_seen_at: number | null
}

/**
 * Locks the accounts in ascending order, after the shard. The account row is read in its newest version, because it is locked here;
 * everything else belongs to the market, whose lock is held already. The repeated `any($2)` keep the joins to keys, whatever is planned.
 */
const ACCOUNTS = `
  with locked as materialized (
    select user_id, free, reserved, pending_withdrawal
    from accounts where user_id = any($2::bigint[]) order by user_id for update
  )
  select
    u.user_id,
    coalesce(l.free, 0) as free,
    coalesce(l.reserved, 0) as reserved,
    coalesce(l.pending_withdrawal, 0) as "pendingWithdrawal",
    coalesce((select sum(folded_margin) from positions p where p.user_id = u.user_id), 0) as "positionMargin",
    coalesce(p.matched_size, 0) as size,
    coalesce(p.matched_entry_notional, 0) as entry_notional,
    coalesce(p.matched_folded_margin, 0) as folded_margin,
    coalesce(p.matched_leverage, 0) as leverage,
    coalesce(t.orders, 0) as count,
    coalesce(t.plain_long, 0) as "plainLong",
    coalesce(t.plain_short, 0) as "plainShort",
    coalesce(t.openable, 0) as openable,
    coalesce(t.open_value, 0) as "openValue",
    coalesce(t.reserved, 0) as "ordersReserved",
    m.mode, r.price as oracle_price, r.observed_at as oracle_at, c.completed_at as chain_seen_at
  from unnest($2::bigint[]) u (user_id)
  join markets m on m.market_id = $1
  left join locked l on l.user_id = u.user_id
  left join positions p on p.user_id = u.user_id and p.market_id = $1 and p.user_id = any($2)
  left join oracle_reports r on r.market_id = $1
  left join chain_progress c on c.chain_id = $3
  left join resting t on t.market_id = $1 and t.user_id = u.user_id and t.user_id = any($2)
`

const STORED = `
  o.*, coalesce(r.filled_value, 0) as filled_value, coalesce(r.fee, 0) as fee,
  coalesce(o.ended_at, r.updated_at, o.accepted_at) as updated_at
`

/** The limits keep each look-up a look-up: without them the planner may join by reading the table. */
const KNOWN = `
  select ${STORED}
  from unnest($2::text[], $3::bigint[]) k (maker, salt)
  cross join lateral (
    select * from orders where market_id = $1 and maker = k.maker and salt = k.salt limit 1
  ) o
  left join lateral (select * from read.orders where order_id = o.order_id limit 1) r on true
  union all
  select ${STORED}
  from unnest($4::text[]) k (hash)
  cross join lateral (select * from orders where hash = k.hash limit 1) o
  left join lateral (select * from read.orders where order_id = o.order_id limit 1) r on true
  where o.market_id = $1
`

const distinct = <Value>(values: readonly Value[]): Value[] => [...new Set(values)]

const accountOf = (row: AccountRow): AccountNow => ({
  free: row.free,
  reserved: row.reserved,
  pendingWithdrawal: row.pendingWithdrawal,
  positionMargin: row.positionMargin,
  position: {
    size: row.size as Steps,
    entryNotional: row.entry_notional as Quote,
    foldedMargin: row.folded_margin as Quote,
    leverage: row.leverage,
  },
  count: row.count,
  plainLong: row.plainLong,
  plainShort: row.plainShort,
  openable: row.openable,
  openValue: row.openValue,
  ordersReserved: row.ordersReserved,
})

async function lockMarket(client: pg.ClientBase, marketId: number): Promise<ShardHead> {
  // One round trip; the shard's name is made from a number, so nothing needs quoting.
  const shard = marketShard(marketId)
  const results = (await client.query(
    `begin; select shard, epoch, head from shards where shard = '${shard}' for update`,
  )) as unknown as pg.QueryResult<ShardHead>[]
  const head = results[1]?.rows[0]
  if (head === undefined) throw new Error(`shard ${shard} does not exist`)
  return head
}

/**
 * Begins the group's transaction, takes its locks and reads what it is decided on, all in one round trip: the queries run one after
 * another, so each reading sees what the locks before it hold still.
 */
export async function openGroup(
  client: pg.ClientBase,
  chainId: number,
  marketId: number,
  commands: readonly Command[],
): Promise<GroupState> {
  const userIds = distinct(commands.map(({ userId }) => userId))
  const placed = commands.flatMap((command) => (command.kind === 'place' ? [command.order] : []))
  const hashes = commands.flatMap((command) => (command.kind === 'cancel' ? [command.hash] : []))
  const [head, accounts, known] = await pipelined([
    lockMarket(client, marketId),
    client.query<AccountRow>({
      name: 'intake-accounts',
      text: ACCOUNTS,
      values: [marketId, userIds, chainId],
    }),
    client.query<StoredOrder>({
      name: 'intake-known',
      text: KNOWN,
      values: [marketId, placed.map(({ maker }) => maker), placed.map(({ salt }) => String(salt)), hashes],
    }),
  ])
  const first = accounts.rows[0] as AccountRow
  return {
    head,
    market: {
      mode: first.mode,
      oraclePrice: first.oracle_price,
      oracleAt: first.oracle_at,
      chainSeenAt: first.chain_seen_at,
    },
    accounts: new Map(accounts.rows.map((row) => [row.user_id, accountOf(row)])),
    byHash: new Map(known.rows.map((row) => [row.hash, row])),
    bySalt: new Map(known.rows.map((row) => [`${row.maker}:${row.salt}`, row])),
  }
}
