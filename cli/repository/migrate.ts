/** `db migrate`: migrates the database at DATABASE_URL to the newest schema. The connection must be the owner's. */
import { createDb, createPool } from '../../db/client.ts'
import { ownerDatabaseUrl } from '../../db/config.ts'
import { migrate as migrateDatabase, NEWEST } from '../../db/migrator.ts'

export async function migrate(): Promise<string> {
  const db = createDb(
    createPool({ url: ownerDatabaseUrl('migration'), connections: 1, name: 'clearbatch migrate' }),
  )
  try {
    await migrateDatabase(db)
    return `the database has schema ${NEWEST}`
  } finally {
    await db.destroy()
  }
}
