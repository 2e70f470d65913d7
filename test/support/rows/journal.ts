/** Journals in which a test writes rows in the place of an engine that does not run. */
import { CompiledQuery } from 'kysely'
import type { Db, Tx } from '../../../db/client.ts'
import { BATCH_NOTICE, hasBatch, JOURNAL_CHANNEL, type ShardHead } from '../../../db/journal.ts'
import type { JournalRow } from '../../../domain/journal/journal-row.ts'

/** Locks the shard until the transaction ends. Throws if the shard does not exist. */
export async function lockShard(tx: Tx, shard: string): Promise<ShardHead> {
  return tx.selectFrom('shards').selectAll().where('shard', '=', shard).forUpdate().executeTakeFirstOrThrow()
}

export async function createShard(tx: Tx | Db, shard: string): Promise<void> {
  await tx
    .insertInto('shards')
    .values({ shard })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

const APPEND_AND_NOTIFY = `
  with appended as (
    insert into journal (shard, seq, row)
    select $1::text, $2::bigint + ordinality, value
    from json_array_elements($3::json) with ordinality
  )
  update shards set head = $4::bigint
  from (select pg_notify('${JOURNAL_CHANNEL}', $1::text || ':' || $4::bigint || $5::text)) notified
  where shard = $1::text
`

/**
 * Appends rows behind `at.head`; the caller holds the shard's lock. Returns the new head: row i has the sequence `at.head + 1 + i`.
 * Listeners on `journal` are notified after the commit.
 */
export async function appendRows(tx: Tx, at: ShardHead, rows: readonly JournalRow[]): Promise<number> {
  if (rows.length === 0) return at.head
  const head = at.head + rows.length
  const notice = hasBatch(rows) ? `:${BATCH_NOTICE}` : ''
  const values = [at.shard, at.head, JSON.stringify(rows), head, notice]
  await tx.executeQuery(CompiledQuery.raw(APPEND_AND_NOTIFY, values))
  return head
}
