/** `read.users`: one row per account, with its address. */

import { PROJECTED_TABLES } from '../../../db/read-schema.ts'
import { rowProjection } from '../projection.ts'
import { tableOf } from '../read-table.ts'
import type { RowChange, ShardEntry } from '../row-change.ts'

interface ReadUser {
  readonly user_id: number
  readonly address: string
  readonly created_at: number
}

const USERS = tableOf<ReadUser>({
  table: 'read.users',
  key: ['user_id'],
  columns: { user_id: 'bigint', address: 'text', created_at: 'bigint' },
})

export const users = rowProjection<ReadUser>({
  name: 'users',
  version: 1,
  tables: PROJECTED_TABLES.users,
  table: USERS,
  changes: userChanges,
  load: async () => [],
})

function userChanges({ row }: ShardEntry): RowChange<ReadUser>[] {
  if (row.kind !== 'user_created') return []
  const user = { user_id: row.user_id, address: row.address, created_at: row.at }
  return [{ key: String(row.user_id), apply: () => user }]
}
