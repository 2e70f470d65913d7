/**
 * Notifies the readers of a journal of its new head, after the commit. Notifications are not part of the group's transaction because
 * Postgres serializes the commits of transactions that notify, each waiting for the disk. Each statement wakes every listening session of
 * every process, so heads that are reported within `REST_MS` of a statement are sent together by the next one. A reader that misses a
 * notification reads the rows at the next one or at its next poll.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import type { Db } from '../../db/client.ts'
import { JOURNAL_CHANNEL } from '../../db/journal.ts'

/** Half of the least time between two chunks of the projector (`indexer/project/projector.ts`), which reads these rows. */
const REST_MS = 10

export interface JournalNotifier {
  /** The shard's journal is committed up to `head`. */
  notify(shard: string, head: number): void
  /** Resolves when all notifications are sent. */
  drained(): Promise<void>
}

export function createJournalNotifier(db: Db): JournalNotifier {
  let heads = new Map<string, number>()
  let sending: Promise<void> | null = null

  const send = async (): Promise<void> => {
    while (heads.size > 0) {
      const payloads = [...heads].map(([shard, head]) => `${shard}:${head}`)
      heads = new Map()
      await sql`select pg_notify(${JOURNAL_CHANNEL}, p) from unnest(${payloads}::text[]) p`
        .execute(db)
        // A lost notification delays readers until their next poll; the rows are committed.
        .catch(() => {})
      await sleep(REST_MS)
    }
    sending = null
  }

  return {
    notify(shard, head) {
      heads.set(shard, head)
      sending ??= send()
    },
    drained: async () => {
      while (sending !== null) await sending
    },
  }
}
