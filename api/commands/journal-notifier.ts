/**
 * Tells those who follow a market's log how far it has come. Not within the group's own transaction: Postgres lets transactions with
 * notifications commit one at a time, each waiting for the disk. One statement is under way at a time, and what is announced meanwhile
 * waits for the next. Whoever misses one sees the rows at the next, or at its own poll.
 */
import { sql } from 'kysely'
import type { Db } from '../../db/client.ts'
import { JOURNAL_CHANNEL } from '../../db/journal.ts'

export interface Announcer {
  /** The shard's log is committed up to here. */
  announce(shard: string, head: number): void
  /** Resolves when everything announced is told. */
  drained(): Promise<void>
}

export function createAnnouncer(db: Db): Announcer {
  let heads = new Map<string, number>()
  let telling: Promise<void> | null = null

  const tell = async (): Promise<void> => {
    while (heads.size > 0) {
      const payloads = [...heads].map(([shard, head]) => `${shard}:${head}`)
      heads = new Map()
      await sql`select pg_notify(${JOURNAL_CHANNEL}, p) from unnest(${payloads}::text[]) p`
        .execute(db)
        // The log is what counts, and it is committed.
        .catch(() => {})
    }
    telling = null
  }

  return {
    announce(shard, head) {
      heads.set(shard, head)
      telling ??= tell()
    },
    drained: async () => {
      while (telling !== null) await telling
    },
  }
}
