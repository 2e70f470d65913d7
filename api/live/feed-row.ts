/** A row of the feed in memory. Its parts are parsed when a subscribed topic needs them. */
import { decodeChanges, type FeedChanges } from '../../db/feed-changes.ts'
import type { FeedBalance, FeedLevel } from '../../db/feed-schema.ts'
import { ACCOUNTS_SHARD } from '../../domain/journal/journal-row.ts'
import type { StoredRow } from './feed-query.ts'

export class FeedRow {
  readonly seq: number
  readonly at: number
  readonly batchId: number | null
  /** Null for a row of the shard of accounts. */
  readonly marketId: number | null
  readonly readAfter: { readonly shard_id: string; readonly shard_seq: string }
  readonly #stored: StoredRow
  #changes: FeedChanges | null = null

  constructor(stored: StoredRow) {
    this.#stored = stored
    this.seq = stored.seq
    this.at = stored.at
    this.batchId = stored.batch_id
    this.marketId = stored.shard === ACCOUNTS_SHARD ? null : Number(stored.shard.slice(1))
    this.readAfter = {
      shard_id: `${stored.shard}.${stored.shard_epoch}`,
      shard_seq: String(stored.shard_seq),
    }
  }

  /** The topics that the row concerns. */
  get heads(): readonly string[] {
    return Object.keys(this.#stored.heads)
  }

  concerns(head: string): boolean {
    return Object.hasOwn(this.#stored.heads, head)
  }

  /** The seq of the topic's row before this one. */
  prevSeq(head: string): number {
    return this.#stored.heads[head] ?? 0
  }

  /** About, in bytes. */
  get size(): number {
    const { changes, levels, balances } = this.#stored
    return changes.length + (levels?.length ?? 0) + (balances?.length ?? 0) + 200
  }

  get levels(): readonly FeedLevel[] {
    return this.#stored.levels === null ? [] : (JSON.parse(this.#stored.levels) as FeedLevel[])
  }

  get balances(): readonly FeedBalance[] {
    return this.#stored.balances === null ? [] : (JSON.parse(this.#stored.balances) as FeedBalance[])
  }

  get changes(): FeedChanges {
    this.#changes ??= decodeChanges(this.#stored.changes)
    return this.#changes
  }

  /** Forgets the parsed form, which takes several times the memory of the text. */
  release(): void {
    this.#changes = null
  }
}
