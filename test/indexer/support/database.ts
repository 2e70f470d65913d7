/** A migrated database for one test file. */
import { createDb, createPool, type Db } from '../../../db/client.ts'
import { freshDatabase as freshUrl } from '../../support/postgres.ts'

export interface TestDatabase {
  readonly db: Db
  readonly url: string
  close(): Promise<void>
}

export async function freshDatabase(): Promise<TestDatabase> {
  return connect(await freshUrl())
}

export function connect(url: string): TestDatabase {
  const db = createDb(createPool({ url, connections: 6, name: 'indexer test', idleInTransactionMs: 0 }))
  return { db, url, close: () => db.destroy() }
}
