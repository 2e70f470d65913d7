/**
 * Defines projections: parts of the read model that are projected, versioned and rebuilt separately. `projections.ts`
 * lists them.
 */
import type { RawBuilder } from 'kysely'
import type { Tx } from '../../db/client.ts'
import type { MarketFeed } from './feed.ts'
import type { ReadTable, WriteClause } from './read-table.ts'
import { type RowChange, RowChanges, type ShardEntry } from './row-change.ts'

export interface Projection {
  /** As `PROJECTED_TABLES` in `db/read-schema.ts` names it. */
  readonly name: string
  /** At least 1. Raised when the code derives other rows from the same journal: the tables are then emptied and filled again. */
  readonly version: number
  readonly tables: readonly string[]
  /**
   * Computes changes of consecutive journal rows of each shard, with one read statement per own table. The result must
   * not depend on chunk bounds or on the order of shards.
   */
  readonly project: (tx: Tx, entries: readonly ShardEntry[]) => Promise<ChunkWrites>
  /** Runs once at the end of a fill, when the rows of all shards are complete. No chunk of the projection runs meanwhile. */
  readonly finish?: (tx: Tx) => Promise<void>
}

/** Writes of a chunk. */
export interface ChunkWrites {
  /** They run as parts of one statement, in any order. Those that several shards may write are `isShared`. */
  readonly clauses: readonly WriteClause[]
  /** Runs before that statement. */
  readonly before?: (tx: Tx) => Promise<void>
  /** Run after it, one after the other, and before the row of the feed is appended. */
  readonly after?: readonly RawBuilder<unknown>[]
  /** Changes for readers of the live feed, by market. */
  readonly feed?: readonly MarketFeed[]
}

interface RowProjection<Row> extends Omit<Projection, 'project' | 'finish'> {
  readonly table: ReadTable<Row>
  /** Keys are unique over all markets. */
  readonly changes: (entry: ShardEntry) => readonly RowChange<Row>[]
  /** The existing rows with these keys. */
  readonly load: (tx: Tx, keys: readonly string[]) => Promise<readonly (readonly [string, Row])[]>
  readonly feed?: (rows: readonly Row[]) => readonly MarketFeed[]
}

/** Splits a key that has the market first: `<market> <rest>`. Returns the parts of all keys as columns. */
export const keyColumns = (keys: readonly string[], columns: number): string[][] =>
  Array.from({ length: columns }, (_, at) => keys.map((key) => key.split(' ')[at] as string))

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
    const rows = new RowChanges(keys.length === 0 ? [] : await load(tx, keys))
    for (const change of all) rows.apply(change)
    const changed = rows.changed()
    return { clauses: [table.replace(changed)], ...(feed && { feed: feed(changed) }) }
  },
})
