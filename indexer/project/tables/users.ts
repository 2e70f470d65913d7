/** `read.users`: one row per account, with its address. */

import { tableOf } from '../read-table.ts'
import type { RowChange, ShardEntry } from '../row-change.ts'

export interface ReadUser {
  readonly user_id: number
  readonly address: string
  readonly created_at: number
}

export const USERS = tableOf<ReadUser>({
  table: 'read.users',
  key: ['user_id'],
  columns: { user_id: 'bigint', address: 'text', created_at: 'bigint' },
})

export function userChanges({ row }: ShardEntry): RowChange<ReadUser>[] {
  if (row.kind !== 'user_created') return []
  const user = { user_id: row.user_id, address: row.address, created_at: row.at }
  return [{ key: String(row.user_id), apply: () => user }]
}
