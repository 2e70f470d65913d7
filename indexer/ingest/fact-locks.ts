/** Which shards and accounts each fact reads and writes, and the locks that a transaction takes before it applies facts. */
import type { Tx } from '../../db/client.ts'
import { findUsers } from '../../db/users.ts'
import { anyOf } from '../../db/values.ts'
import { accountsOfAll, isSingleFact, moves } from '../../domain/chain/fact-accounts.ts'
import type { ChainFact } from '../../domain/chain/facts.ts'
import { ACCOUNTS_SHARD, marketShard } from '../../domain/journal/journal-row.ts'
import type { Address } from '../../domain/units.ts'
import type { ChainLog } from '../ports.ts'
import { type LockedOrders, lockOrders } from './lock-orders.ts'
import { LockedShards } from './locked-shards.ts'

export interface BlockFact {
  readonly log: ChainLog
  readonly fact: ChainFact
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

/**
 * Locks the shards of the facts, and the accounts if orders of theirs may be cancelled in any market. `stopped`: further shards that the
 * caller needs to lock.
 */
export async function lockFacts(
  tx: Tx,
  facts: readonly BlockFact[],
  stopped: readonly string[] = [],
): Promise<LockedOrders> {
  const addresses = accountsOfAll(facts)
  const isKnown = await findUsers(tx, addresses)
  const needed = addresses.every((address) => isKnown.has(address)) ? [] : [ACCOUNTS_SHARD]
  const shards = [...facts.flatMap((logged) => shardOf(logged) ?? []), ...stopped, ...needed]
  const cancelled = facts.flatMap(cancelledEverywhere)
  if (cancelled.length === 0) return usersOf(tx, facts, await LockedShards.lock(tx, shards))
  return lockOrders(tx, { shards, addresses: [...addresses, ...facts.flatMap(cancellersOf)], cancelled })
}

/** Of facts whose shards are locked, and that cancel orders in no other shard. */
export async function usersOf(
  tx: Tx,
  facts: readonly BlockFact[],
  shards: LockedShards,
): Promise<LockedOrders> {
  const users = await findUsers(tx, [...accountsOfAll(facts), ...facts.flatMap(cancellersOf)])
  return { shards, users, areAccountsLocked: false }
}

/** Of the accounts of facts in several shards, those with a pending withdrawal. Only facts of the chain change it. */
export async function withPending(tx: Tx, facts: readonly BlockFact[]): Promise<Address[]> {
  if (new Set(facts.map(shardOf)).size < 2) return []
  const rows = await tx
    .selectFrom('users')
    .innerJoin('accounts', 'accounts.user_id', 'users.user_id')
    .select('address')
    .where('address', '=', anyOf('text', accountsOfAll(facts)))
    .where('pending_withdrawal', '<>', 0n)
    .execute()
  return rows.map(({ address }) => address as Address)
}
