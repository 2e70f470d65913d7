/** Accounts that a test locks, and their reservations. */
import { CompiledQuery } from 'kysely'
import type { Tx } from '../../../db/client.ts'
import type { Statement } from '../../../db/round-trip.ts'
import { anyOf } from '../../../db/values.ts'
import { withMirror } from '../mirror.ts'

/** Locks account rows in ascending order until the transaction ends, and returns them. Shard locks come first. */
export async function lockAccounts(tx: Tx, userIds: Iterable<number>) {
  const ids = [...new Set(userIds)]
  if (ids.length === 0) return []
  return withMirror(tx)
    .selectFrom('accounts')
    .selectAll()
    .where('user_id', '=', anyOf('bigint', ids))
    .orderBy('user_id')
    .forUpdate()
    .execute()
}

const CHANGE_RESERVED = `
  update accounts a set reserved = a.reserved + d.delta
  from unnest($1::bigint[], $2::numeric[]) d (user_id, delta)
  where a.user_id = d.user_id and a.user_id = any($1::bigint[])
`

/** Reserves (positive) or releases (negative) wei of locked accounts. Deltas of 0 must be left out. */
export const changeReservedQuery = (deltas: readonly (readonly [number, bigint])[]): Statement => ({
  name: 'change-reserved',
  text: CHANGE_RESERVED,
  values: [deltas.map(([userId]) => userId), deltas.map(([, delta]) => String(delta))],
})

/** Reserves (positive) or releases (negative) wei of locked accounts. */
export async function changeReserved(tx: Tx, deltas: ReadonlyMap<number, bigint>): Promise<void> {
  const changes = [...deltas].filter(([, delta]) => delta !== 0n)
  if (changes.length === 0) return
  const { text, values } = changeReservedQuery(changes)
  await tx.executeQuery(CompiledQuery.raw(text, [...values]))
}
