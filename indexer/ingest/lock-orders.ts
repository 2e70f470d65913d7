/** Takes the locks under which every order of an account can be cancelled, without locking the markets in which it has none. */
import { sql } from 'kysely'
import { lockAccounts } from '../../db/accounts.ts'
import type { Tx } from '../../db/client.ts'
import { marketsWithOrders } from '../../db/resting.ts'
import { findUsers } from '../../db/users.ts'
import { marketShard } from '../../domain/journal/journal-row.ts'
import type { Address } from '../../domain/units.ts'
import { LockedShards } from './locked-shards.ts'

export interface WantedLocks {
  readonly shards: readonly string[]
  /** Users whose account rows are locked. */
  readonly addresses: readonly Address[]
  /** Further account rows to lock. */
  readonly userIds?: readonly number[]
  /** Those of the addresses whose orders may be cancelled in any market. `shards` must include `accounts` if there is one. */
  readonly cancelled: readonly Address[]
}

export interface LockedOrders {
  readonly shards: LockedShards
  /** The ids of the addresses that have a user. */
  readonly users: ReadonlyMap<Address, number>
  /** Else the rows of these users are still to be locked. */
  readonly areAccountsLocked: boolean
}

/** Then every market is locked: the account places orders in new markets faster than they are locked. */
const ATTEMPTS = 3

const idsOf = (users: ReadonlyMap<Address, number>, addresses: readonly Address[]): number[] =>
  addresses.flatMap((address) => users.get(address) ?? [])

async function allMarkets(tx: Tx): Promise<number[]> {
  const rows = await tx.selectFrom('markets').select('market_id').execute()
  return rows.map(({ market_id }) => market_id)
}

/**
 * Locks the shards, then the account rows. A placement locks its account, so the markets with orders are final once the rows are locked. If
 * an order was placed in another market before that, the locks are released and taken again with that market, because account rows come
 * after shards.
 */
export async function lockOrders(
  tx: Tx,
  { shards, addresses, userIds = [], cancelled }: WantedLocks,
): Promise<LockedOrders> {
  let markets = await marketsWithOrders(tx, idsOf(await findUsers(tx, cancelled), cancelled))
  for (let attempt = 1; ; attempt++) {
    await sql`savepoint before_locks`.execute(tx)
    const locked = await LockedShards.lock(tx, [...shards, ...markets.map(marketShard)])
    const users = await findUsers(tx, addresses)
    await lockAccounts(tx, [...users.values(), ...userIds])
    const current = await marketsWithOrders(tx, idsOf(users, cancelled))
    const missing = current.filter((marketId) => !markets.includes(marketId))
    if (missing.length === 0) {
      await sql`release savepoint before_locks`.execute(tx)
      return { shards: locked, users, areAccountsLocked: true }
    }
    await sql`rollback to savepoint before_locks`.execute(tx)
    markets = attempt < ATTEMPTS ? [...markets, ...missing] : await allMarkets(tx)
  }
}
