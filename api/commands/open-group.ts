/** Opens a group's transaction: takes its locks and reads its state. */
import type pg from 'pg'
import { toFundings } from '../../db/funding.ts'
import type { ShardHead } from '../../db/journal.ts'
import { readTogether } from '../../db/round-trip.ts'
import { ACCOUNTS_SHARD, marketShard } from '../../domain/journal/journal-row.ts'
import { NO_FUNDING } from '../../domain/prices/funding-state.ts'
import type { Quote, Steps } from '../../domain/units.ts'
import type { Command } from './command.ts'
import type { CurrentMarket, Funds, GroupState, Holding, StoredOrder } from './group-state.ts'
import {
  beginStatement,
  fundingStatement,
  type HoldingRow,
  holdingsStatement,
  liveOrders,
  marketsWithOrders,
  type Purpose,
  type RestingPair,
  sessionSigners,
  shardsStatement,
  storedByHash,
  storedBySalt,
  storedRequests,
} from './group-statements.ts'
import { byLabel, labelledOrders } from './labelled-orders.ts'
import { bySalt, holdingKey, requestKey, signerKey } from './state-keys.ts'

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
  const lockedShards = isSpanning ? [ACCOUNTS_SHARD, ...shards] : shards
  const { locked, held, salted, hashed, live, resting, requests, signers, labelled, funding } =
    await readTogether(client, {
      begin: beginStatement(purpose),
      locked: shardsStatement(lockedShards, purpose),
      held: holdingsStatement(commands, chainId, purpose),
      salted: storedBySalt(commands),
      hashed: storedByHash(commands),
      live: liveOrders(commands),
      resting: marketsWithOrders(commands),
      requests: storedRequests(commands),
      signers: sessionSigners(commands),
      labelled: labelledOrders(commands),
      funding: fundingStatement(commands, marketIds),
    })
  const heads = headsOf(locked, lockedShards)
  const known = [...salted, ...hashed, ...live]
  const fundings = toFundings(funding)
  return {
    markets: marketsOf(held, heads, fundings),
    fundings,
    accounts: heads.get(ACCOUNTS_SHARD) ?? null,
    funds: new Map(held.map((row) => [row.user_id, fundsOf(row)])),
    holdings: new Map(held.map((row) => [holdingKey(row.market_id, row.user_id), holdingOf(row)])),
    byHash: new Map(known.map((row) => [row.hash, row])),
    bySalt: bySalt(known),
    live: hashesByHolding(live),
    marketsWithOrders: marketsByUser(resting),
    requests: new Map(requests.map((row) => [requestKey(row.user_id, row.client_request_id), row])),
    labelled: byLabel(labelled),
    signers: new Map(signers.map((key) => [signerKey(key.owner, key.key), key])),
  }
}

function headsOf(rows: readonly ShardHead[], shards: readonly string[]): ReadonlyMap<string, ShardHead> {
  if (rows.length < shards.length)
    throw new Error(`found ${rows.length} of the shards ${shards.join(', ')}; all of them must exist`)
  return new Map(rows.map((head) => [head.shard, head]))
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
