/** `npm run rebuild`: rebuilds the read model from the first row of the journal. Safe while the indexer runs; readers wait until it has caught up. */

import { createDb, createPool } from '../db/client.ts'
import { argumentsOf } from '../service/command-line.ts'
import { readDatabaseUrl } from './config.ts'
import { rebuild } from './project/rebuild.ts'

const CHUNK = 2_000

argumentsOf({ command: 'npm run rebuild', flags: {} })
try {
  const pool = createPool({ url: readDatabaseUrl(), connections: 2, name: 'clearbatch rebuild' })
  const db = createDb(pool)
  const start = Date.now()
  try {
    const rows = await rebuild(db, { limit: CHUNK, killPoint: () => {} })
    console.log(`${rows} rows projected in ${((Date.now() - start) / 1000).toFixed(1)} s`)
  } finally {
    await db.destroy()
  }
} catch (error) {
  console.error(`rebuild: ${(error as Error).message}`)
  process.exitCode = 1
}
