/**
 * Notifies the projector of shards that reads with a bookmark wait for, so that it projects them at once. After a lost
 * notice a read waits for the projector's ordinary delay.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import type { Db } from '../../db/client.ts'
import { BOOKMARK_CHANNEL } from '../../db/journal.ts'

/** Shards named while a statement runs, and within this time after it, share the next statement. */
const REST_MS = 5

export interface BookmarkNotices {
  /** A read waits for rows of the shard. */
  notify(shard: string): void
}

export function createBookmarkNotices(db: Db): BookmarkNotices {
  let shards = new Set<string>()
  let isSending = false

  const send = async (): Promise<void> => {
    isSending = true
    while (shards.size > 0) {
      const named = [...shards]
      shards = new Set()
      // A notice need not outlive a crash, so its commit does not wait for the disk.
      await sql`
        select set_config('synchronous_commit', 'off', true), pg_notify(${BOOKMARK_CHANNEL}, shard) from unnest(${named}::text[]) shard
      `
        .execute(db)
        .catch(() => {})
      await sleep(REST_MS)
    }
    isSending = false
  }

  return {
    notify(shard) {
      shards.add(shard)
      if (!isSending) void send()
    },
  }
}
