/**
 * What a projection is: a part of the read model that is projected, versioned and rebuilt on its own. `projections.ts` lists all of them.
 */
import type { RawBuilder } from 'kysely'
import type { Tx } from '../../db/client.ts'
import type { FeedPart } from './feed.ts'
import type { ReadTable, WriteClause } from './read-table.ts'
import { type RowChange, RowChanges, type ShardEntry } from './row-change.ts'

export interface Projection {
  /** As `PROJECTED_TABLES` in `db/read-schema.ts` names it. */
  readonly name: string
  /** At least 1. Raised when the code derives other rows from the same journal: the tables are then emptied and filled again. */
  readonly version: number
  readonly tables: readonly string[]
  /**
   * Computes what consecutive journal rows of one shard change. It reads only its own tables. The result must not depend on where chunks
   * begin and end, nor on the order in which shards are projected.
   */
  readonly project: (tx: Tx, entries: readonly ShardEntry[]) => Promise<ChunkWrites>
  /** Runs once at the end of a fill, when the rows of all shards are complete. No chunk of the projection runs meanwhile. */
  readonly finish?: (tx: Tx) => Promise<void>
}

/** What a chunk writes. */
export interface ChunkWrites {
  /** They run as parts of one statement, in any order. Those that several shards may write are `isShared`. */
  readonly clauses: readonly WriteClause[]
  /** Runs before that statement. */
  readonly before?: (tx: Tx) => Promise<void>
  /** Run after it, one after the other, and before the row of the feed is appended. */
  readonly after?: readonly RawBuilder<unknown>[]
  /** Run with the row of the feed, after `after`. */
  readonly last?: readonly WriteClause[]
  /** What readers of the live feed learn of the changes. */
  readonly feed?: FeedPart
}

interface RowProjection<Row> extends Omit<Projection, 'project' | 'finish'> {
  readonly table: ReadTable<Row>
  readonly changes: (entry: ShardEntry) => readonly RowChange<Row>[]
  /** The existing rows of the market with these keys. */
  readonly load: (
    tx: Tx,
    marketId: number,
    keys: readonly string[],
  ) => Promise<readonly (readonly [string, Row])[]>
  readonly feed?: (rows: readonly Row[], entries: readonly ShardEntry[]) => FeedPart
}

/** A projection of one table whose rows each follow from their previous state and the journal. */
export const rowProjection = <Row>({
  table,
  changes,
  load,
  feed,
  ...rest
}: RowProjection<Row>): Projection => ({
  ...rest,
  async project(tx, entries) {
    const all = entries.flatMap(changes)
    const keys = [...new Set(all.map(({ key }) => key))]
    const rows = new RowChanges(keys.length === 0 ? [] : await load(tx, entries[0]?.marketId ?? 0, keys))
    for (const change of all) rows.apply(change)
    const changed = rows.changed()
    return { clauses: [table.replace(changed)], ...(feed && { feed: feed(changed, entries) }) }
  },
})
