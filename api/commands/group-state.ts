/** The state on which a group is decided: read under the locks of its markets and accounts, so that the decision is final. */

import type { Selectable } from 'kysely'
import type pg from 'pg'
import {
  fundingColumn,
  fundingOfMargins,
  type MarketFunding,
  marginsColumn,
  type StoredMargin,
  toFundings,
} from '../../db/funding.ts'
import type { ShardHead } from '../../db/journal.ts'
import type { ClientRequestsTable, OrdersTable, RestingTable } from '../../db/schema.ts'
import { SIGNERS_SQL, type SigningKeyRow } from '../../db/session-keys.ts'
import { TERMS_SQL, type TermsColumns } from '../../db/terms.ts'
import { ACCOUNTS_SHARD, marketShard } from '../../domain/journal/journal-row.ts'
import type { Position } from '../../domain/positions/position.ts'
import { type FundingState, NO_FUNDING } from '../../domain/prices/funding-state.ts'
import type { Quote, Steps } from '../../domain/units.ts'
import type { Command } from './command.ts'
import { byLabel, type LabelledOrder, queryLabelled } from './labelled-orders.ts'
import { sendTogether } from './send-together.ts'
import { bySalt, holdingKey, requestKey, signerKey } from './state-keys.ts'

export interface CurrentMarket {
  readonly head: ShardHead
  /** With announced changes; see `toMarketTerms`. */
  readonly terms: TermsColumns
  readonly oraclePrice: bigint | null
  readonly oracleAt: number | null
  /** Time at which the indexer last completed a pass over the chain's head. */
  readonly chainSeenAt: number | null
  /** After the last queued action. */
  readonly funding: FundingState
}

/** Balances of an account, and its margins in all markets. */
export interface Funds {
  readonly free: bigint
  readonly reserved: bigint
  readonly pendingWithdrawal: bigint
  readonly margins: readonly StoredMargin[]
}

/** An account in one market: its position and the sums over its live orders. */
export interface Holding {
  /** The matched position: mined and unsettled fills together. */
  readonly position: Position
  readonly count: number
  /** Remaining steps of plain orders. */
  readonly plainLong: number
  readonly plainShort: number
  readonly openable: number
  /** Sum of openable steps x reserved price, in ticks. */
  readonly openValue: bigint
  /** Reservation of the live orders, settling fills included. */
  readonly ordersReserved: bigint
}

export type StoredOrder = Selectable<OrdersTable> & {
  readonly filled_value: bigint
  readonly fee: bigint
  readonly protection_price: number | null
  readonly updated_at: number
}

export type StoredRequest = Pick<ClientRequestsTable, 'digest' | 'answer'>

export interface GroupState {
  readonly markets: Map<number, CurrentMarket>
  /** Head of the `accounts` shard; null unless the group spans markets. */
  readonly accounts: ShardHead | null
  readonly funds: Map<number, Funds>
  /** By `holdingKey`. */
  readonly holdings: Map<string, Holding>
  /** After the last queued action: of the group's markets, and of those in which its accounts have margin. */
  readonly fundings: ReadonlyMap<number, FundingState>
  /** Existing orders, by hash and by `saltKey`. */
  readonly byHash: Map<string, StoredOrder>
  readonly bySalt: Map<string, StoredOrder>
  /** Hashes of live orders, oldest first, by `holdingKey`; read only for commands that cancel all orders. */
  readonly live: Map<string, readonly string[]>
  /** Of accounts that cancel all orders: the markets in which they have live orders. */
  readonly marketsWithOrders: ReadonlyMap<number, readonly number[]>
  /** Commands that were executed before, by `requestKey`. */
  readonly requests: Map<string, StoredRequest>
  /** Live orders of all markets with a label that a placement of the group has, by `labelKey`: more than one only after a rollback. */
  readonly labelled: Map<string, readonly LabelledOrder[]>
  /** Session keys that signed orders of the group, by `signerKey`. */
  readonly signers: ReadonlyMap<string, SigningKeyRow>
}

interface HoldingRow extends Omit<Holding, 'position'>, Funds, TermsColumns {
  readonly user_id: number
  /** 0 if the row describes the account only. */
  readonly market_id: number
  readonly size: number
  readonly entry_notional: bigint
  readonly folded_margin: bigint
  readonly leverage: number
  readonly oracle_price: bigint | null
  readonly oracle_at: number | null
  readonly chain_seen_at: number | null
}

/**
 * Locks the accounts in ascending order, after the shards. Locking reads the newest version of the account row; all other rows belong
 * to the markets, which are locked already. The limits force each join to be a lookup by key.
 */
const holdings = (locking: string): string => `
  with locked as materialized (
    select user_id, free, reserved, pending_withdrawal
    from accounts where user_id = any($2::bigint[]) order by user_id ${locking}
  )
  select
    k.user_id, k.market_id,
    coalesce(l.free, 0) as free,
    coalesce(l.reserved, 0) as reserved,
    coalesce(l.pending_withdrawal, 0) as "pendingWithdrawal",
    ${marginsColumn('positions', 'k.user_id')} as margins,
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
    ${TERMS_SQL}, r.price as oracle_price,
    case when r.status <> 'halted' then r.observed_at end as oracle_at, c.completed_at as chain_seen_at
  from unnest($1::integer[], $2::bigint[]) k (market_id, user_id)
  left join locked l on l.user_id = k.user_id
  left join lateral (select * from markets where market_id = k.market_id limit 1) m on true
  left join lateral (
    select * from positions where user_id = k.user_id and market_id = k.market_id limit 1
  ) p on true
  left join lateral (
    select * from oracle_reports where market_id = k.market_id and feed = 'index' limit 1
  ) r on true
  left join lateral (select completed_at from chain_progress where chain_id = $3 limit 1) c on true
  left join lateral (select * from resting where market_id = k.market_id and user_id = k.user_id limit 1) t on true
`

const STORED = `
  o.*, coalesce(r.filled_value, 0) as filled_value, coalesce(r.fee, 0) as fee, r.protection_price,
  coalesce(o.ended_at, r.updated_at, o.accepted_at) as updated_at
`
const READ_ROW = 'left join lateral (select * from read.orders where order_id = o.order_id limit 1) r on true'

const STORED_ORDERS = `
  select ${STORED}
  from unnest($1::integer[], $2::text[], $3::bigint[]) k (market_id, maker, salt)
  cross join lateral (
    select * from orders where market_id = k.market_id and maker = k.maker and salt = k.salt and not forced limit 1
  ) o
  ${READ_ROW}
  union all
  select ${STORED}
  from unnest($4::text[]) k (hash)
  cross join lateral (select * from orders where hash = k.hash limit 1) o
  ${READ_ROW}
`

/** Without forced orders. The offset keeps the planner from flattening the subquery: each pair is a lookup in the index of live orders. */
const LIVE = `
  select ${STORED}
  from unnest($1::integer[], $2::bigint[]) k (market_id, user_id)
  cross join lateral (
    select * from orders where market_id = k.market_id and user_id = k.user_id and ended_at is null and not forced offset 0
  ) o
  ${READ_ROW}
  order by o.market_id, o.seq
`

const MARKETS_WITH_ORDERS = `
  select user_id, market_id from resting where user_id = any($1::bigint[]) and orders > 0
`

type RestingPair = Pick<RestingTable, 'user_id' | 'market_id'>

const REQUESTS = `
  select r.user_id, r.client_request_id, r.digest, r.answer
  from unnest($1::bigint[], $2::text[]) k (user_id, id)
  cross join lateral (
    select * from client_requests where user_id = k.user_id and client_request_id = k.id limit 1
  ) r
`

/** Each market once, however many accounts and positions use it. */
const FUNDING = `
  select k.market_id, ${fundingColumn('k.market_id')} as funding from unnest($1::integer[]) k (market_id)
  union all
  select * from (${fundingOfMargins('positions', '$2::bigint[]')}) f where market_id <> all($1::integer[])
`

/** `write` takes locks; `dry-run` reads a snapshot without locks. */
export type Purpose = 'write' | 'dry-run'

const LOCKING = { write: 'for update', 'dry-run': '' } as const
const BEGIN = { write: 'begin', 'dry-run': 'begin isolation level repeatable read read only' } as const

/** `for update` runs after the sort, so the locks are taken in order. */
const shardHeads = (locking: string): string =>
  `select shard, epoch, head from shards where shard = any($1::text[]) order by shard collate "C" ${locking}`

async function openShards(client: pg.ClientBase, shards: readonly string[], purpose: Purpose) {
  const rows = await query<ShardHead & pg.QueryResultRow>(
    client,
    `command-shards-${purpose}`,
    shardHeads(LOCKING[purpose]),
    [shards],
  )
  if (rows.length < shards.length)
    throw new Error(`found ${rows.length} of the shards ${shards.join(', ')}; all of them must exist`)
  return new Map(rows.map((head) => [head.shard, head]))
}

/** The pairs of market and account that the commands use; market 0 for a command without markets. */
function pairsOf(commands: readonly Command[]): { marketIds: number[]; userIds: number[] } {
  const pairs = new Map<string, readonly [number, number]>()
  for (const { userId, markets } of commands) {
    const ids = markets.length === 0 ? [0] : markets.map(({ marketId }) => marketId)
    for (const id of ids) pairs.set(holdingKey(id, userId), [id, userId])
  }
  const all = [...pairs.values()]
  return { marketIds: all.map(([id]) => id), userIds: all.map(([, id]) => id) }
}

const query = <Row extends pg.QueryResultRow>(
  client: pg.ClientBase,
  name: string,
  text: string,
  values: unknown[],
): Promise<Row[]> => client.query<Row>({ name, text, values }).then(({ rows }) => rows)

function queryStored(client: pg.ClientBase, commands: readonly Command[]): Promise<StoredOrder[]> {
  const items = commands.flatMap(({ items }) => items)
  const placed = items.flatMap((item) => (item.kind === 'place' ? [item.order] : []))
  const hashes = items.flatMap((item) => (item.kind === 'cancel' ? [item.hash] : []))
  const salts = [
    placed.map(({ marketId }) => marketId),
    placed.map(({ maker }) => maker),
    placed.map(({ salt }) => String(salt)),
  ]
  return query<StoredOrder>(client, 'command-stored-orders', STORED_ORDERS, [...salts, hashes])
}

const cancellingAll = (commands: readonly Command[]): readonly Command[] =>
  commands.filter(({ items }) => items.some(({ kind }) => kind === 'cancel_all'))

/** Final, because the accounts are locked: a placement in any market locks its account. */
async function queryMarketsWithOrders(
  client: pg.ClientBase,
  commands: readonly Command[],
): Promise<RestingPair[]> {
  const userIds = cancellingAll(commands).map(({ userId }) => userId)
  if (userIds.length === 0) return []
  return query<RestingPair>(client, 'command-markets-with-orders', MARKETS_WITH_ORDERS, [userIds])
}

async function queryLive(client: pg.ClientBase, commands: readonly Command[]): Promise<StoredOrder[]> {
  const cancelling = cancellingAll(commands)
  if (cancelling.length === 0) return []
  const { marketIds, userIds } = pairsOf(cancelling)
  return query<StoredOrder>(client, 'command-live', LIVE, [marketIds, userIds])
}

type RequestRow = Pick<ClientRequestsTable, 'user_id' | 'client_request_id' | 'digest' | 'answer'>

async function queryRequests(client: pg.ClientBase, commands: readonly Command[]): Promise<RequestRow[]> {
  const named = commands.filter(({ request }) => request !== null)
  if (named.length === 0) return []
  const ids = named.map(({ request }) => request?.id)
  return query<RequestRow>(client, 'command-requests', REQUESTS, [named.map(({ userId }) => userId), ids])
}

async function querySigners(client: pg.ClientBase, commands: readonly Command[]): Promise<SigningKeyRow[]> {
  const orders = commands.flatMap(({ items }) =>
    items.flatMap((item) =>
      item.kind === 'place' && item.order.signer !== item.order.maker ? [item.order] : [],
    ),
  )
  if (orders.length === 0) return []
  const values = [orders.map(({ maker }) => maker), orders.map(({ signer }) => signer)]
  return query<SigningKeyRow>(client, 'command-signers', SIGNERS_SQL, values)
}

export interface GroupScope {
  readonly chainId: number
  readonly marketIds: readonly number[]
  /** Whether a command of the group uses several markets, or none. */
  readonly isSpanning: boolean
}

/**
 * Begins the group's transaction, takes its locks and reads its state in one round trip. The queries run in sequence, so each one
 * reads under the locks before it. A dry run takes no locks and reads one snapshot.
 */
export async function openGroup(
  client: pg.ClientBase,
  { chainId, marketIds, isSpanning }: GroupScope,
  commands: readonly Command[],
  purpose: Purpose = 'write',
): Promise<GroupState> {
  const shards = marketIds.map(marketShard)
  const pairs = pairsOf(commands)
  const values = [pairs.marketIds, pairs.userIds, chainId]
  const [, heads, held, known, live, resting, requests, signers, labelled, funding] = await sendTogether(
    client,
    () => [
      client.query(BEGIN[purpose]),
      openShards(client, isSpanning ? [ACCOUNTS_SHARD, ...shards] : shards, purpose),
      query<HoldingRow>(client, `command-holdings-${purpose}`, holdings(LOCKING[purpose]), values),
      queryStored(client, commands),
      queryLive(client, commands),
      queryMarketsWithOrders(client, commands),
      queryRequests(client, commands),
      querySigners(client, commands),
      queryLabelled(client, commands),
      query<MarketFunding & pg.QueryResultRow>(client, 'command-funding', FUNDING, [
        marketIds,
        [...new Set(pairs.userIds)],
      ]),
    ],
  )
  const fundings = toFundings(funding)
  return {
    markets: marketsOf(held, heads, fundings),
    fundings,
    accounts: heads.get(ACCOUNTS_SHARD) ?? null,
    funds: new Map(held.map((row) => [row.user_id, fundsOf(row)])),
    holdings: new Map(held.map((row) => [holdingKey(row.market_id, row.user_id), holdingOf(row)])),
    byHash: new Map([...known, ...live].map((row) => [row.hash, row])),
    bySalt: bySalt([...known, ...live]),
    live: hashesByHolding(live),
    marketsWithOrders: marketsByUser(resting),
    requests: new Map(requests.map((row) => [requestKey(row.user_id, row.client_request_id), row])),
    labelled: byLabel(labelled),
    signers: new Map(signers.map((key) => [signerKey(key.owner, key.key), key])),
  }
}

function marketsOf(
  rows: readonly HoldingRow[],
  heads: ReadonlyMap<string, ShardHead>,
  fundings: GroupState['fundings'],
) {
  const markets = new Map<number, CurrentMarket>()
  for (const row of rows) {
    const head = heads.get(marketShard(row.market_id))
    if (head === undefined || markets.has(row.market_id)) continue
    markets.set(row.market_id, {
      head,
      terms: row,
      oraclePrice: row.oracle_price,
      oracleAt: row.oracle_at,
      chainSeenAt: row.chain_seen_at,
      funding: fundings.get(row.market_id) ?? NO_FUNDING,
    })
  }
  return markets
}

const fundsOf = ({ free, reserved, pendingWithdrawal, margins }: HoldingRow): Funds => ({
  ...{ free, reserved, pendingWithdrawal, margins },
})

const holdingOf = (row: HoldingRow): Holding => ({
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

function marketsByUser(pairs: readonly RestingPair[]): Map<number, number[]> {
  const byUser = Map.groupBy(pairs, ({ user_id }) => user_id)
  return new Map([...byUser].map(([userId, own]) => [userId, own.map(({ market_id }) => market_id)]))
}

function hashesByHolding(orders: readonly StoredOrder[]): Map<string, string[]> {
  const hashes = new Map<string, string[]>()
  for (const { market_id, user_id, hash } of orders) {
    const key = holdingKey(market_id, user_id)
    const known = hashes.get(key)
    if (known === undefined) hashes.set(key, [hash])
    else known.push(hash)
  }
  return hashes
}
