/** Schema and incarnation of the database, which the engine and its clients compare. */
import { sql } from 'kysely'
import type { Db } from './client.ts'
import { newestMigration } from './migrator.ts'

export interface EngineIdentity {
  /** The newest migration. */
  readonly schema: string
  /** Rises when the database is restored from a backup. */
  readonly incarnation: number
}

/** The setting that `ops backup restore` writes: the point in time to which the server was recovered. */
export const RESTORED_TO = 'clearbatch.restored_to'

/** The server was recovered from a backup, and the restore is not finished: bookmarks and processes would take the history for the lost one. */
export class UnfinishedRestoreError extends Error {
  override readonly name = 'UnfinishedRestoreError'
}

/** True from a restore until an engine has replayed the chain. Throws UnfinishedRestoreError before `ops backup finish`. */
export async function isRestored(db: Db): Promise<boolean> {
  const { point, recorded, caught_up, incarnation } = await db
    .selectFrom('engine_ownership')
    .select(['incarnation', 'caught_up', 'restored_to as recorded'])
    .select(sql<string | null>`nullif(current_setting(${RESTORED_TO}, true), '')`.as('point'))
    .executeTakeFirstOrThrow()
  if (point !== null && point !== recorded)
    throw new UnfinishedRestoreError(
      `the database was restored to ${point}: run \`npm run cb -- ops backup finish --to ${point} --send\` before its processes`,
    )
  return caught_up < incarnation
}

/** The engine has replayed the chain: it goes on as after any other start. */
export async function noteCaughtUp(db: Db): Promise<void> {
  await sql`update engine_ownership set caught_up = incarnation`.execute(db)
}

export async function engineIdentity(db: Db): Promise<EngineIdentity> {
  const { incarnation } = await db
    .selectFrom('engine_ownership')
    .select('incarnation')
    .executeTakeFirstOrThrow()
  return { schema: (await newestMigration(db)) ?? 'none', incarnation }
}
