/** Users and their accounts. */
import type { JournalRow } from '../domain/journal/journal-row.ts'
import type { Address } from '../domain/units.ts'
import type { Db, Tx } from './client.ts'

export async function findUsers(db: Db | Tx, addresses: readonly Address[]): Promise<Map<Address, number>> {
  if (addresses.length === 0) return new Map()
  const rows = await db
    .selectFrom('users')
    .select(['user_id', 'address'])
    .where('address', 'in', addresses)
    .execute()
  return new Map(rows.map(({ user_id, address }) => [address as Address, user_id]))
}

/**
 * Creates the users that do not exist yet, in the order given. The caller holds the lock of the `accounts` shard and appends the
 * returned rows to it.
 */
export async function createUsers(
  tx: Tx,
  addresses: readonly Address[],
  at: number,
): Promise<{ users: Map<Address, number>; rows: JournalRow[] }> {
  const users = await findUsers(tx, addresses)
  const rows: JournalRow[] = []
  for (const address of addresses) {
    if (users.has(address)) continue
    const { user_id } = await tx
      .insertInto('users')
      .values({ address, created_at: at })
      .returning('user_id')
      .executeTakeFirstOrThrow()
    await tx.insertInto('accounts').values({ user_id }).execute()
    users.set(address, user_id)
    rows.push({ kind: 'user_created', user_id, address, at })
  }
  return { users, rows }
}
