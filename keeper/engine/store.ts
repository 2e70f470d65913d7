/** Journal and lease on Postgres. */
import type pg from 'pg'
import {
  appendWithTables,
  failureOf,
  readGroups,
  readLease,
  releaseLease,
  renewLease,
  takeLease,
} from '../../db/engine-journal.ts'
import type { Statement } from '../../db/round-trip.ts'
import {
  AppendUnknown,
  ContentRejected,
  type Group,
  type Journal,
  JournalUnavailable,
  type Lease,
} from './ports.ts'

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

function toAppendError(error: unknown): Error {
  const failure = failureOf(error)
  if (failure === 'content') return new ContentRejected(messageOf(error), { cause: error })
  if (failure === 'unavailable') return new JournalUnavailable(messageOf(error), { cause: error })
  return new AppendUnknown(messageOf(error), { cause: error })
}

/** Statements for the tables that follow the journal. Called when the state has exactly these rows behind those of the last call. */
export type TablesOf<Row> = (rows: readonly Row[]) => Statement[]

/** The statements of an append, also when it is repeated: the state may have further rows by then. */
function collectOnce<Row>(tablesOf: TablesOf<Row>): TablesOf<Row> {
  let last: { readonly rows: readonly Row[]; readonly statements: Statement[] } | null = null
  return (rows) => {
    if (rows.length === 0) return []
    if (last?.rows !== rows) last = { rows, statements: tablesOf(rows) }
    return last.statements
  }
}

/** `tablesOf`: what is stored with each group that this process appends. */
export const createJournal = <Row>(pool: pg.Pool, tablesOf: TablesOf<Row> = () => []): Journal<Row> =>
  journalWith(pool, collectOnce(tablesOf))

const journalWith = <Row>(pool: pg.Pool, tablesOf: TablesOf<Row>): Journal<Row> => ({
  async append(group) {
    const tables = tablesOf(group.rows)
    // Without a connection nothing was sent.
    const client = await pool.connect().catch((error: unknown) => {
      throw new JournalUnavailable(messageOf(error), { cause: error })
    })
    try {
      return await appendWithTables(client, group, tables)
    } catch (error) {
      throw toAppendError(error)
    }
  },
  async read(after, most) {
    try {
      return (await readGroups(pool, after, most)) as unknown as readonly Group<Row>[]
    } catch (error) {
      throw new JournalUnavailable(messageOf(error), { cause: error })
    }
  },
})

export const createLease = (pool: pg.Pool): Lease => ({
  read: () => readLease(pool),
  take: (seen) => takeLease(pool, seen),
  renew: (token) => renewLease(pool, token),
  release: (token) => releaseLease(pool, token),
})
