/** Writes the changes of a group by a constant number of statements per market, whatever the size of the group. */
import type pg from 'pg'
import { changeReservedQuery } from '../../db/accounts.ts'
import { insertRequestsQuery } from '../../db/client-requests.ts'
import { appendRowsQuery, type ShardHead } from '../../db/journal.ts'
import { endOrdersQuery, insertOrdersQuery } from '../../db/orders.ts'
import type { JournalRow } from '../../domain/journal/journal-row.ts'
import type { GroupChanges } from './group-changes.ts'
import { sendTogether } from './send-together.ts'

/** The new head of a shard's journal. */
export interface NewHead {
  readonly shard: string
  readonly head: number
}

/** Writes the changes inside the group's transaction, in one round trip. Returns the new heads of the shards that have new rows. */
export async function writeGroup(
  client: pg.ClientBase,
  changes: GroupChanges,
  now: number,
): Promise<NewHead[]> {
  const journals = newRowsOf(changes)
  const statements = [...journals.map(appendStatement), ...otherStatements(changes, now)]
  await sendTogether(client, () => statements.map((statement) => client.query(statement)))
  return journals.map(({ at, rows }) => ({ shard: at.shard, head: at.head + rows.length }))
}

/** New journal rows of a shard, and the signature of each row that places an order. */
interface NewRows {
  readonly at: ShardHead
  readonly rows: readonly JournalRow[]
  readonly signatures: readonly (string | null)[]
}

function newRowsOf({ rows, placed, state, spanned }: GroupChanges): NewRows[] {
  const signatures = new Map<JournalRow, string>(placed.map(({ row, signature }) => [row, signature]))
  const of = (at: ShardHead, list: readonly JournalRow[]): NewRows => ({
    at,
    rows: list,
    signatures: list.map((row) => signatures.get(row) ?? null),
  })
  const journals = [...state.markets].map(([marketId, { head }]) => of(head, rows.get(marketId) ?? []))
  if (state.accounts !== null) journals.push(of(state.accounts, spanned))
  return journals.filter(({ rows }) => rows.length > 0)
}

const appendStatement = ({ at, rows, signatures }: NewRows): pg.QueryConfig =>
  signatures.some((signature) => signature !== null)
    ? insertOrdersQuery(at, rows, signatures)
    : appendRowsQuery(at, rows)

function otherStatements({ ended, reservedDeltas, requests }: GroupChanges, now: number): pg.QueryConfig[] {
  const deltas = [...reservedDeltas].filter(([, delta]) => delta !== 0n)
  return [
    ...(ended.length === 0 ? [] : [endOrdersQuery(ended)]),
    ...(deltas.length === 0 ? [] : [changeReservedQuery(deltas)]),
    ...(requests.length === 0 ? [] : [insertRequestsQuery(requests, now)]),
  ]
}
