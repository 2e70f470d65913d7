/** The locked shards of a transaction, and the rows that it will append to each. */

import type { Tx } from '../../db/client.ts'
import { appendToShards, lockFreeShards, lockShards, type ShardHead } from '../../db/journal.ts'
import { invariant } from '../../domain/invariant.ts'
import type { JournalRow } from '../../domain/journal/journal-row.ts'

/** A row's place in the journal. */
export interface RowPlace {
  readonly shard: string
  readonly seq: number
}

export class LockedShards {
  readonly #heads: ReadonlyMap<string, ShardHead>
  readonly #rows = new Map<string, JournalRow[]>()

  private constructor(heads: ReadonlyMap<string, ShardHead>) {
    this.#heads = heads
  }

  static async lock(tx: Tx, shards: Iterable<string>): Promise<LockedShards> {
    return new LockedShards(await lockShards(tx, [...shards]))
  }

  /** Locks those of the shards that no other transaction has locked, without waiting. */
  static async lockFree(tx: Tx, shards: Iterable<string>): Promise<LockedShards> {
    return new LockedShards(await lockFreeShards(tx, [...shards]))
  }

  has(shard: string): boolean {
    return this.#heads.has(shard)
  }

  /** The sequence of the row that is appended next. */
  next(shard: string): number {
    const head = this.#heads.get(shard)
    invariant(head !== undefined, `rows are appended to ${shard} under its lock`)
    return head.head + (this.#rows.get(shard)?.length ?? 0) + 1
  }

  append(shard: string, row: JournalRow): RowPlace {
    const seq = this.next(shard)
    const rows = this.#rows.get(shard) ?? []
    this.#rows.set(shard, rows)
    rows.push(row)
    return { shard, seq }
  }

  /** Appends all rows. Must be called once, at the end of the transaction. */
  async write(tx: Tx): Promise<void> {
    const appended = [...this.#rows].map(([shard, rows]) => ({
      at: this.#heads.get(shard) as ShardHead,
      rows,
    }))
    await appendToShards(tx, appended)
  }
}
