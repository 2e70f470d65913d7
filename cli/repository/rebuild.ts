/**
 * `db rebuild`: rebuilds the read model from the journal, or one projection with `--projection NAME`. Safe while the
 * indexer runs; readers of these tables wait.
 */
import { createDb, createPool } from '../../db/client.ts'
import { readDatabaseUrl } from '../../indexer/config.ts'
import { MARKED_MS } from '../../indexer/project/fill.ts'
import { PROJECTIONS } from '../../indexer/project/projections.ts'
import { rebuild as rebuildAll, rebuildProjection } from '../../indexer/project/rebuild.ts'
import type { Context } from '../context.ts'
import { CommandError, EXIT } from '../failure.ts'

const CHUNK = 2_000

export async function rebuild(
  _context: Context,
  { projection }: { readonly projection: string | undefined },
): Promise<string> {
  const found = PROJECTIONS.find(({ name }) => name === projection)
  if (projection !== undefined && found === undefined)
    throw new CommandError(
      `--projection must be one of ${PROJECTIONS.map(({ name }) => name).join(', ')}, not ${projection}`,
      EXIT.usage,
    )
  const options = { limit: CHUNK, killPoint() {}, markedMs: MARKED_MS }
  const db = createDb(createPool({ url: readDatabaseUrl(), connections: 2, name: 'clearbatch rebuild' }))
  const start = Date.now()
  try {
    if (found === undefined) await rebuildAll(db, options)
    else await rebuildProjection(db, found.name, options)
    return `${projection ?? 'the read model'} rebuilt in ${((Date.now() - start) / 1000).toFixed(1)} s`
  } finally {
    await db.destroy()
  }
}
