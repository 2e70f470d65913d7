/** Which shards and accounts each fact reads and writes, and the locks that a transaction takes before it applies facts. */
import { lockAccounts } from '../../db/accounts.ts'
import type { Tx } from '../../db/client.ts'
import { findUsers } from '../../db/users.ts'
import { ACCOUNTS_SHARD, marketShard } from '../../domain/journal/journal-row.ts'
import type { Address } from '../../domain/units.ts'
import type { ChainLog } from '../ports.ts'
import type { ChainFact, PartMined } from './facts.ts'
import { type LockedOrders, lockOrders } from './lock-orders.ts'
import type { LockedShards } from './locked-shards.ts'
import { movedAccounts, type PositionMoveFact } from './move-positions.ts'
import { isSingleFact } from './single-actions.ts'

export interface BlockFact {
  readonly log: ChainLog
  readonly fact: ChainFact
}

const MOVING: ReadonlySet<string> = new Set<PositionMoveFact['kind']>([
  'position_adjusted',
  'position_inherited',
  'positions_deleveraged',
  'insolvency_reported',
  'claimed',
  'deficit_covered',
])

export const moves = (fact: ChainFact): fact is PositionMoveFact => MOVING.has(fact.kind)

export const makersOf = ({ settled }: PartMined): Address[] => settled.fills.map(({ maker }) => maker)

/** The accounts whose balance or position changes. They become users. */
export function accountsOf({ fact }: BlockFact): Address[] {
  if (fact.kind === 'ledger_moved') return [fact.account]
  if (moves(fact)) return movedAccounts(fact)
  return fact.kind === 'part_mined' ? makersOf(fact) : []
}

/** Accounts that cancel on the chain or register a key. An account without a user does not become one by this. */
function cancellersOf({ fact }: BlockFact): Address[] {
  if (fact.kind === 'salts_cancelled') return [fact.maker]
  return fact.kind === 'session_key_updated' ? [fact.owner] : []
}

/** Orders that a withdrawal leaves uncovered, or that a revoked key has signed, may be in any market. */
function cancelledEverywhere({ fact }: BlockFact): Address[] {
  if (fact.kind === 'ledger_moved' && fact.cause === 'withdrawal_request') return [fact.account]
  return fact.kind === 'session_key_updated' && 'revoked_at' in fact.change ? [fact.owner] : []
}

const OF_ACCOUNTS: ReadonlySet<string> = new Set<ChainFact['kind']>([
  'ledger_moved',
  'session_key_updated',
  'forward_request_executed',
  'bank_pause_changed',
])

/** The shard whose journal gets the fact's row. Of a fact without effects, null. */
export function shardOf({ fact }: BlockFact): string | null {
  if (OF_ACCOUNTS.has(fact.kind)) return ACCOUNTS_SHARD
  if (
    fact.kind === 'part_mined' ||
    fact.kind === 'salts_cancelled' ||
    fact.kind === 'ending_changed' ||
    fact.kind === 'terms_changed' ||
    fact.kind === 'haircut_fixed' ||
    fact.kind === 'margin_nonces_invalidated' ||
    moves(fact) ||
    isSingleFact(fact)
  ) {
    return marketShard(fact.spec.marketId)
  }
  return fact.kind === 'undecodable' && fact.spec ? marketShard(fact.spec.marketId) : null
}

/** The accounts of the facts, each once, in order. */
export const accountsOfAll = (facts: readonly BlockFact[]): Address[] => [
  ...new Set(facts.flatMap(accountsOf)),
]

/** Locks everything that the facts read and write. `stopped`: further shards that the caller needs to lock. */
export async function lockFacts(
  tx: Tx,
  facts: readonly BlockFact[],
  stopped: readonly string[] = [],
): Promise<LockedOrders> {
  const addresses = accountsOfAll(facts)
  const isKnown = await findUsers(tx, addresses)
  const needed = addresses.every((address) => isKnown.has(address)) ? [] : [ACCOUNTS_SHARD]
  return lockOrders(tx, {
    shards: [...facts.flatMap((logged) => shardOf(logged) ?? []), ...stopped, ...needed],
    addresses: [...addresses, ...facts.flatMap(cancellersOf)],
    cancelled: facts.flatMap(cancelledEverywhere),
  })
}

/** Completes the locks of facts whose shards are locked, and that cancel orders in no other shard. */
export async function lockAccountsOf(
  tx: Tx,
  facts: readonly BlockFact[],
  shards: LockedShards,
): Promise<LockedOrders> {
  const users = await findUsers(tx, [...accountsOfAll(facts), ...facts.flatMap(cancellersOf)])
  await lockAccounts(tx, users.values())
  return { shards, users }
}
