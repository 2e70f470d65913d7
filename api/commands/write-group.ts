/** Writes the changes of a group by a constant number of statements per market, whatever the size of the group. */
import pg from 'pg'
import { changeReservedQuery } from '../../db/accounts.ts'
import { insertRequestsQuery } from '../../db/client-requests.ts'
import { appendRowsQuery, type ShardHead } from '../../db/journal.ts'
import { endOrdersQuery, insertOrdersQuery } from '../../db/orders.ts'
import { runTogether, type Statement } from '../../db/round-trip.ts'
import type { JournalRow } from '../../domain/journal/journal-row.ts'
import { isConnectionError } from '../database-errors.ts'
import type { GroupChanges } from './group-changes.ts'

/** The new head of a shard's journal. */
export interface NewHead {
  readonly shard: string
  readonly head: number
}

/** The connection broke after the commit was sent, so the outcome is not known. */
export class CommitUnknown extends Error {}

const COMMIT: Statement = { name: 'commit', text: 'commit', values: [] }

/**
 * Writes the changes and commits in one round trip, so that the locks are held for no further one. The server does not execute the commit
 * behind a failed statement. Returns the new heads of the shards that have new rows. Throws CommitUnknown, or another error if nothing was
 * stored.
 */
export async function commitGroup(
  client: pg.ClientBase,
  changes: GroupChanges,
  now: number,
): Promise<NewHead[]> {
  const journals = newRowsOf(changes)
  const writes = [...journals.map(appendStatement), ...otherStatements(changes, now)]
  const { rows, error } = await runTogether(client, [...writes, COMMIT])
  if (error !== null)
    throw isUndecided(error, rows.length === writes.length) ? new CommitUnknown(error.message) : error
  return journals.map(({ at, rows }) => ({ shard: at.shard, head: at.head + rows.length }))
}

/** An error that the server answers to a statement before the commit decides: it aborts. */
const isUndecided = (error: Error, isOfCommit: boolean): boolean =>
  isConnectionError(error) && (isOfCommit || !(error instanceof pg.DatabaseError))

/** New journal rows of a shard. */
interface NewRows {
  readonly at: ShardHead
  readonly rows: readonly JournalRow[]
}

function newRowsOf({ rows, state, spanned }: GroupChanges): NewRows[] {
  const journals: NewRows[] = [...state.markets].map(([marketId, { head }]) => ({
    at: head,
    rows: rows.get(marketId) ?? [],
  }))
  if (state.accounts !== null) journals.push({ at: state.accounts, rows: spanned })
  return journals.filter(({ rows }) => rows.length > 0)
}

const appendStatement = ({ at, rows }: NewRows): Statement =>
  rows.some(({ kind }) => kind === 'order_placed') ? insertOrdersQuery(at, rows) : appendRowsQuery(at, rows)

function otherStatements({ ended, reservedDeltas, requests }: GroupChanges, now: number): Statement[] {
  const deltas = [...reservedDeltas].filter(([, delta]) => delta !== 0n)
  return [
    ...(ended.length === 0 ? [] : [endOrdersQuery(ended)]),
    ...(deltas.length === 0 ? [] : [changeReservedQuery(deltas)]),
    ...(requests.length === 0 ? [] : [insertRequestsQuery(requests, now)]),
  ]
}
