/**
 * Announces committed chunks to readers, in one statement for those of several shards: at once after a quiet moment, and at most every few
 * milliseconds under load. A lost announcement costs readers a poll.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import type { Db } from '../../db/client.ts'
import { encodeNotice, PROJECTED_CHANNEL, type ProjectedNotice } from '../../db/projected-notices.ts'

/** A committed chunk. */
export interface ProjectedChunk {
  readonly shard: string
  readonly epoch: number
  readonly seq: number
  readonly projections: readonly string[]
  readonly feedSeq: number | null
}

/** Least time between two statements. */
const MERGE_MS = 10

export class Announcer {
  readonly #db: Db
  readonly #onFailure: (error: Error) => void
  /** By projections and shard: the last chunk. */
  #pending = new Map<string, ProjectedChunk>()
  #running: Promise<void> | null = null

  constructor(db: Db, onFailure: (error: Error) => void) {
    this.#db = db
    this.#onFailure = onFailure
  }

  add(chunk: ProjectedChunk): void {
    const key = `${chunk.projections.join()} ${chunk.shard}`
    const before = this.#pending.get(key)?.feedSeq ?? null
    this.#pending.set(key, { ...chunk, feedSeq: chunk.feedSeq ?? before })
    this.#running ??= this.#run().finally(() => {
      this.#running = null
    })
  }

  /** Resolves when everything is announced. */
  async stop(): Promise<void> {
    while (this.#running !== null) await this.#running
  }

  async #run(): Promise<void> {
    while (this.#pending.size > 0) {
      const chunks = [...this.#pending.values()]
      this.#pending = new Map()
      const rest = sleep(MERGE_MS)
      try {
        await announce(this.#db, chunks)
      } catch (error) {
        this.#onFailure(error as Error)
      }
      await rest
    }
  }
}

export async function announce(db: Db, chunks: readonly ProjectedChunk[]): Promise<void> {
  const payloads = noticesOf(chunks).flatMap(encodeNotice)
  await sql`select pg_notify(${PROJECTED_CHANNEL}, p) from unnest(${payloads}::text[]) p`.execute(db)
}

/** One for all shards whose chunks have the same projections. */
function noticesOf(chunks: readonly ProjectedChunk[]): ProjectedNotice[] {
  const groups = Map.groupBy(chunks, ({ projections }) => projections.join())
  return [...groups.values()].map((group) => {
    const feedSeqs = group.flatMap(({ feedSeq }) => feedSeq ?? [])
    return {
      projections: group[0]?.projections ?? [],
      shards: group.map(({ shard, epoch, seq }) => ({ shard, epoch, seq })),
      feedSeq: feedSeqs.length === 0 ? null : Math.max(...feedSeqs),
    }
  })
}
