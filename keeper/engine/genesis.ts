/** The first group of an exchange: the markets that were listed before its engine started for the first time. */
import type pg from 'pg'
import type { Db } from '../../db/client.ts'
import { appendGroup } from '../../db/engine-journal.ts'
import { AppliedRows } from '../../domain/exchange/applied-rows.ts'
import type { Entry } from '../../domain/exchange/apply.ts'
import { createState } from '../../domain/exchange/state.ts'
import { GROUP_VERSION } from './ports.ts'

/** More rows than listings and settings of markets have. */
const MOST_ROWS = 10_000

/** The database has a history that no engine has written, and that lacks what a state needs. */
export class ForeignHistoryError extends Error {
  override readonly name = 'ForeignHistoryError'
}

const SETUP = new Set([
  'market_listed',
  'calendar_set',
  'impact_notional_set',
  'protection_announced',
  'fees_announced',
])

/** Stores the group, unless another member has. The journal has no group yet. */
export async function storeGenesis(db: Db, pool: pg.Pool): Promise<void> {
  const rows: readonly Entry[] = await db
    .selectFrom('journal')
    .select(['shard', 'seq', 'row'])
    .orderBy('shard')
    .orderBy('seq')
    .limit(MOST_ROWS + 1)
    .execute()
  const other = rows.find(({ row }) => !SETUP.has(row.kind))
  if (other !== undefined)
    throw new ForeignHistoryError(
      `the journal has a row ${other.row.kind} of a version without an engine: start with an empty database (\`npm start -- --fresh\`)`,
    )
  if (rows.length > MOST_ROWS)
    throw new ForeignHistoryError(
      `the journal has more than ${MOST_ROWS} rows from before the engine: expected at most as many listings and settings of markets`,
    )
  const applied = new AppliedRows(createState())
  const before = applied.digest()
  for (const row of rows) applied.apply(row)
  const group = { number: 1, token: 0, version: GROUP_VERSION, rows, before, digest: applied.digest() }
  await appendGroup(await pool.connect(), group)
}
