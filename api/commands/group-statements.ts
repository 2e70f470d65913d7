/** The statements that begin a group's transaction, take its locks and read its state. */

import { fundingColumn, fundingOfMargins, type MarketFunding, marginsColumn } from '../../db/funding.ts'
import type { ShardHead } from '../../db/journal.ts'
import type { Read, Statement } from '../../db/round-trip.ts'
import type { ClientRequestsTable, RestingTable } from '../../db/schema.ts'
import { SIGNERS_SQL, type SigningKeyRow } from '../../db/session-keys.ts'
import { TERMS_SQL, type TermsColumns } from '../../db/terms.ts'
import type { Command } from './command.ts'
import type { Funds, Holding, StoredOrder } from './group-state.ts'
import { holdingKey } from './state-keys.ts'

export interface HoldingRow extends Omit<Holding, 'position'>, Funds, TermsColumns {
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

const STORED_BY_SALT = `
  select ${STORED}
  from unnest($1::integer[], $2::text[], $3::bigint[]) k (market_id, maker, salt)
  cross join lateral (
    select * from orders where market_id = k.market_id and maker = k.maker and salt = k.salt and not forced limit 1
  ) o
  ${READ_ROW}
`

/** $1: hashes. */
export const STORED_BY_HASH = `
  select ${STORED}
  from unnest($1::text[]) k (hash)
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

export type RestingPair = Pick<RestingTable, 'user_id' | 'market_id'>

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

export const beginStatement = (purpose: Purpose): Statement => ({
  name: `begin-${purpose}`,
  text: BEGIN[purpose],
  values: [],
})

export const shardsStatement = (shards: readonly string[], purpose: Purpose): Read<ShardHead> => ({
  name: `command-shards-${purpose}`,
  text: shardHeads(LOCKING[purpose]),
  values: [shards],
})

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

export function holdingsStatement(
  commands: readonly Command[],
  chainId: number,
  purpose: Purpose,
): Read<HoldingRow> {
  const { marketIds, userIds } = pairsOf(commands)
  return {
    name: `command-holdings-${purpose}`,
    text: holdings(LOCKING[purpose]),
    values: [marketIds, userIds, chainId],
  }
}

export function fundingStatement(
  commands: readonly Command[],
  marketIds: readonly number[],
): Read<MarketFunding> {
  const userIds = new Set(commands.map(({ userId }) => userId))
  return { name: 'command-funding', text: FUNDING, values: [marketIds, [...userIds]] }
}

/** Orders with the salt of a placement. */
export function storedBySalt(commands: readonly Command[]): Read<StoredOrder> | null {
  const placed = commands.flatMap(({ items }) =>
    items.flatMap((item) => (item.kind === 'place' ? [item.order] : [])),
  )
  if (placed.length === 0) return null
  const values = [
    placed.map(({ marketId }) => marketId),
    placed.map(({ maker }) => maker),
    placed.map(({ salt }) => salt),
  ]
  return { name: 'command-stored-by-salt', text: STORED_BY_SALT, values }
}

/** Orders to cancel. */
export function storedByHash(commands: readonly Command[]): Read<StoredOrder> | null {
  const hashes = commands.flatMap(({ items }) =>
    items.flatMap((item) => (item.kind === 'cancel' ? [item.hash] : [])),
  )
  if (hashes.length === 0) return null
  return { name: 'command-stored-by-hash', text: STORED_BY_HASH, values: [hashes] }
}

const cancellingAll = (commands: readonly Command[]): readonly Command[] =>
  commands.filter(({ items }) => items.some(({ kind }) => kind === 'cancel_all'))

/** Final, because the accounts are locked: a placement in any market locks its account. */
export function marketsWithOrders(commands: readonly Command[]): Read<RestingPair> | null {
  const userIds = cancellingAll(commands).map(({ userId }) => userId)
  if (userIds.length === 0) return null
  return { name: 'command-markets-with-orders', text: MARKETS_WITH_ORDERS, values: [userIds] }
}

export function liveOrders(commands: readonly Command[]): Read<StoredOrder> | null {
  const cancelling = cancellingAll(commands)
  if (cancelling.length === 0) return null
  const { marketIds, userIds } = pairsOf(cancelling)
  return { name: 'command-live', text: LIVE, values: [marketIds, userIds] }
}

type RequestRow = Pick<ClientRequestsTable, 'user_id' | 'client_request_id' | 'digest' | 'answer'>

export function storedRequests(commands: readonly Command[]): Read<RequestRow> | null {
  const named = commands.flatMap(({ userId, request }) => (request === null ? [] : [{ userId, request }]))
  if (named.length === 0) return null
  const values = [named.map(({ userId }) => userId), named.map(({ request }) => request.id)]
  return { name: 'command-requests', text: REQUESTS, values }
}

export function sessionSigners(commands: readonly Command[]): Read<SigningKeyRow> | null {
  const orders = commands.flatMap(({ items }) =>
    items.flatMap((item) =>
      item.kind === 'place' && item.order.signer !== item.order.maker ? [item.order] : [],
    ),
  )
  if (orders.length === 0) return null
  const values = [orders.map(({ maker }) => maker), orders.map(({ signer }) => signer)]
  return { name: 'command-signers', text: SIGNERS_SQL, values }
}
