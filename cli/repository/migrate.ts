/** `db migrate`: migrates the database at DATABASE_URL. The connection must be the owner's. */
import { createDb, createPool } from '../../db/client.ts'
import { ownerDatabaseUrl } from '../../db/config.ts'
import { migrate as migrateDatabase, newestMigration } from '../../db/migrator.ts'
import type { Context } from '../context.ts'

/** Longest wait for a lock: statements of running processes wait behind the migration. */
const LOCK_TIMEOUT = '1000'

export async function migrate(
  _context: Context,
  { contract }: { readonly contract: boolean },
): Promise<string> {
  const db = createDb(
    createPool({
      url: ownerDatabaseUrl('migration'),
      connections: 1,
      name: 'clearbatch migrate',
      settings: { lock_timeout: LOCK_TIMEOUT },
    }),
  )
  try {
    const waiting = await migrateDatabase(db, { isContracted: contract })
    const reached = `the database has schema ${await newestMigration(db)}`
    if (waiting.length === 0) return reached
    return `${reached}; once no process of the earlier version runs, --contract applies ${waiting.join(', ')}`
  } finally {
    await db.destroy()
  }
}
