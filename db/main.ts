/** `npm run migrate`: migrates the database at DATABASE_URL to the newest schema. The connection must be the owner's. */
import { argumentsOf } from '../service/command-line.ts'
import { createDb, createPool } from './client.ts'
import { ownerDatabaseUrl } from './config.ts'
import { MIGRATIONS, migrate } from './migrator.ts'

argumentsOf({ command: 'npm run migrate', flags: {} })
try {
  const url = ownerDatabaseUrl('migration')
  const db = createDb(createPool({ url, connections: 1, name: 'clearbatch migrate' }))
  try {
    await migrate(db)
    console.log(`the database has schema ${Object.keys(MIGRATIONS).at(-1)}`)
  } finally {
    await db.destroy()
  }
} catch (error) {
  console.error(`migrate: ${(error as Error).message}`)
  process.exitCode = 1
}
