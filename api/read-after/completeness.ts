/**
 * Whether the tables of the read model are complete. A new or rebuilt projection is filled from the journal; reads must
 * not show its incomplete tables.
 */
import { sql } from 'kysely'
import type { Db } from '../../db/client.ts'
import { PROJECTED_TABLES, type ProjectionName, type ReadTableName } from '../../db/read-schema.ts'
import { type Clock, elapsed } from '../../service/clock.ts'
import { ApiError } from '../errors.ts'

/** Tables and scope of a read. */
export interface ReadScope {
  /** Every table of the read model that its statements name. `test/api/read-after/scopes.test.ts` compares it with the statements. */
  readonly tables: readonly [ReadTableName, ...ReadTableName[]]
  /** Set if all of its rows come from one shard: the read does not depend on other shards. */
  readonly shard?: string
}

export function projectionsOf({ tables }: ReadScope): ProjectionName[] {
  const names = Object.keys(PROJECTED_TABLES) as ProjectionName[]
  return names.filter((name) =>
    PROJECTED_TABLES[name].some((table) => (tables as readonly string[]).includes(table)),
  )
}

/** SQL: whether the projection, an SQL expression, is incomplete in the shard, or in any shard if none is given. */
export const isFilling = (projection: string, shard: string | undefined) => sql<boolean>`exists (
  select from read.places filling where filling.projection = ${sql.raw(projection)} and filling.fill_to is not null
    ${shard === undefined ? sql`` : sql`and filling.shard = ${shard}`}
)`

/** Age up to which a known state counts. The indexer marks a projection for longer than this and a read's duration before it empties it. */
const STATE_AGE_MS = 1_000

export interface Completeness {
  /** Rejects with READ_MODEL_FILLING unless the tables of the scope are complete. */
  expect(scope: ReadScope): Promise<void>
}

/** By projection, the shards in which it is being filled. Empty before an indexer has run for the first time: there are no rows either. */
type Filling = ReadonlyMap<string, readonly string[]>

const isComplete = (filling: Filling, scope: ReadScope): boolean =>
  filling.size === 0 ||
  projectionsOf(scope).every((name) => {
    const shards = filling.get(name)
    if (shards === undefined) return false
    return scope.shard === undefined ? shards.length === 0 : !shards.includes(scope.shard)
  })

export function createCompleteness(db: Db, clock: Clock): Completeness {
  let filling: Filling = new Map()
  let knownAt = Number.NEGATIVE_INFINITY
  let reading: Promise<void> | null = null

  async function read(): Promise<void> {
    const startedAt = clock.now()
    const { rows } = await sql<{ projection: string; shards: string[] }>`
      select projection, coalesce(array_agg(shard) filter (where fill_to is not null), '{}') as shards
      from read.places group by projection
    `.execute(db)
    filling = new Map(rows.map(({ projection, shards }) => [projection, shards]))
    knownAt = startedAt
  }
  const refresh = (): Promise<void> => {
    reading ??= read().finally(() => {
      reading = null
    })
    return reading
  }

  return {
    async expect(scope) {
      if (isComplete(filling, scope) && elapsed(clock, knownAt) <= STATE_AGE_MS) return
      await refresh()
      if (!isComplete(filling, scope)) throw new ApiError('READ_MODEL_FILLING', {}, '2')
    },
  }
}
