/** Schema and incarnation of the database, which the engine and its clients compare. */
import type { Db } from './client.ts'
import { newestMigration } from './migrator.ts'

export interface EngineIdentity {
  /** The newest migration. */
  readonly schema: string
  /** Rises when the database is restored from a backup. */
  readonly incarnation: number
}

export async function engineIdentity(db: Db): Promise<EngineIdentity> {
  const { incarnation } = await db
    .selectFrom('engine_ownership')
    .select('incarnation')
    .executeTakeFirstOrThrow()
  return { schema: (await newestMigration(db)) ?? 'none', incarnation }
}
