/**
 * Announces committed chunks to readers: at once after a quiet moment or with a batch, otherwise at most every few
 * milliseconds. After a lost announcement readers wait for their poll.
 */
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
  /** Readers of the live feed wait for it. */
  readonly hasBatch: boolean
}

/** Least time between two statements, unless the later one has a batch. */
const MERGE_MS = 10

export class Announcer {
  readonly #db: Db
  readonly #onFailure: (error: Error) => void
  readonly #mergeMs: number
  /** By projections and shard: the last chunk. */
  #pending = new Map<string, ProjectedChunk>()
  #running: Promise<void> | null = null
  /** Ends the present rest; null if it may not end early. */
  #hurry: (() => void) | null = null

  constructor(db: Db, onFailure: (error: Error) => void, mergeMs = MERGE_MS) {
    this.#db = db
    this.#onFailure = onFailure
    this.#mergeMs = mergeMs
  }

  add(chunk: ProjectedChunk): void {
    const key = `${chunk.projections.join()} ${chunk.shard}`
    const before = this.#pending.get(key)?.feedSeq ?? null
    this.#pending.set(key, { ...chunk, feedSeq: chunk.feedSeq ?? before })
    if (chunk.hasBatch) this.#hurry?.()
    this.#running ??= this.#run()
  }

  /** Resolves when everything is announced. */
  async stop(): Promise<void> {
    while (this.#running !== null) await this.#running
  }

  async #run(): Promise<void> {
    let isWhole = true
    try {
      while (this.#pending.size > 0) {
        const chunks = [...this.#pending.values()]
        this.#pending = new Map()
        const rest = this.#rest(isWhole)
        await announce(this.#db, chunks).catch(this.#onFailure)
        isWhole = await rest
      }
    } finally {
      // Nothing is awaited since the last look at what is pending.
      this.#running = null
    }
  }

  /** Resolves with whether it has lasted the whole time. */
  #rest(mayHurry: boolean): Promise<boolean> {
    return new Promise((resolve) => {
      const end = (isWhole: boolean): void => {
        clearTimeout(timer)
        this.#hurry = null
        resolve(isWhole)
      }
      const timer = setTimeout(end, this.#mergeMs, true)
      this.#hurry = mayHurry ? () => end(false) : null
    })
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
