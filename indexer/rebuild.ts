/**
 * `npm run rebuild`: rebuilds the read model from the first row of the journal; `-- --projection NAME` only the tables of one projection,
 * while the others serve. Safe while the indexer runs. Readers of these tables wait until they are complete.
 */

import { createDb, createPool } from '../db/client.ts'
import { argumentsOf, oneOf } from '../service/command-line.ts'
import { readDatabaseUrl } from './config.ts'
import { MARKED_MS } from './project/fill.ts'
import { PROJECTIONS } from './project/projections.ts'
import { rebuild, rebuildProjection } from './project/rebuild.ts'

const CHUNK = 2_000

const names = PROJECTIONS.map(({ name }) => name)
const { projection } = argumentsOf({
  command: 'npm run rebuild --',
  flags: { projection: oneOf(names, 'rebuild only the tables of this projection') },
})
const options = { limit: CHUNK, killPoint() {}, markedMs: MARKED_MS }
try {
  const pool = createPool({ url: readDatabaseUrl(), connections: 2, name: 'clearbatch rebuild' })
  const db = createDb(pool)
  const start = Date.now()
  try {
    if (projection === undefined) await rebuild(db, options)
    else await rebuildProjection(db, projection, options)
    console.log(`${projection ?? 'the read model'} rebuilt in ${((Date.now() - start) / 1000).toFixed(1)} s`)
  } finally {
    await db.destroy()
  }
} catch (error) {
  console.error(`rebuild: ${(error as Error).message}`)
  process.exitCode = 1
}
