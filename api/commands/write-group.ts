/** Writes the changes of a group by a constant number of statements per market, whatever the size of the group. */
import type pg from 'pg'
import { APPEND_ROWS, APPENDING, type ShardHead } from '../../db/journal.ts'
import type { JournalRow } from '../../domain/journal/journal-row.ts'
import type { GroupChanges } from './group-changes.ts'
import { sendTogether } from './send-together.ts'

/**
 * Appends a market's rows to its journal and inserts the orders of its placements. The journal row of a placement contains all columns of
 * the order except the signature. Parameters: those of APPEND_ROWS, and each row's signature or null.
 */
const APPEND_AND_PLACE = `
  with placed as (
    insert into orders (
      order_id, market_id, seq, user_id, maker, signer, hash, signature, salt, side, type, price, quantity, trigger, leverage,
      reduce_only, expiration, alive_until, status, openable, reserved_price, reserved, accepted_at
    )
    select
      r.order_id, split_part(r.order_id, '-', 1)::integer, split_part(r.order_id, '-', 2)::bigint, r.user_id, r.maker, r.signer,
      r.hash, r.signature, r.salt, r.side, r.type, r.price, r.quantity, r.trigger, r.leverage, r.reduce_only, r.expiration,
      r.alive_until, r.status, r.openable, r.reserved_price, r.reserved, r.accepted_at
    from rows from (
      json_to_recordset($3::json) as (
        kind text, order_id text, user_id bigint, maker text, signer text, hash text, salt bigint, side text, type text,
        price bigint, quantity bigint, trigger bigint, leverage integer, reduce_only boolean, expiration bigint,
        alive_until bigint, status text, openable bigint, reserved_price bigint, reserved numeric, accepted_at bigint
      ),
      unnest($5::text[])
    ) as r (
      kind, order_id, user_id, maker, signer, hash, salt, side, type, price, quantity, trigger, leverage, reduce_only, expiration,
      alive_until, status, openable, reserved_price, reserved, accepted_at, signature
    )
    where r.kind = 'order_placed'
  ), ${APPENDING}
`

const END = `
  update orders o set
    status = e.status, status_reason = e.status_reason, closing_reason = e.closing_reason, note = e.note, ended_at = e.ended_at,
    openable = 0, reserved = 0
  from jsonb_to_recordset($1::jsonb) as e (
    order_id text, status text, status_reason text, closing_reason text, note text, ended_at bigint
  )
  where o.order_id = e.order_id and o.order_id = any($2::text[])
`

const RESERVE = `
  update accounts a set reserved = a.reserved + d.delta
  from unnest($1::bigint[], $2::numeric[]) d (user_id, delta)
  where a.user_id = d.user_id and a.user_id = any($1::bigint[])
`

const KEEP = `
  insert into client_requests (user_id, client_request_id, digest, answer, created_at)
  select k.user_id, k.id, k.digest, k.answer, $5::bigint
  from unnest($1::bigint[], $2::text[], $3::bytea[], $4::text[]) k (user_id, id, digest, answer)
`

/** The new head of a shard's journal. */
export interface NewHead {
  readonly shard: string
  readonly head: number
}

/** Writes the changes inside the group's transaction. Returns the new heads of the shards that have new rows. */
export async function writeGroup(
  client: pg.ClientBase,
  changes: GroupChanges,
  now: number,
): Promise<NewHead[]> {
  const journals = journalsOf(changes)
  const statements = [
    ...journals.map(appendStatement),
    ...endStatements(changes),
    ...accountStatements(changes, now),
  ]
  await sendTogether(client, () => statements.map((statement) => client.query(statement)))
  return journals.map(({ at, rows }) => ({ shard: at.shard, head: at.head + rows.length }))
}

/** New journal rows of a shard, and the signature of each row that places an order. */
interface NewRows {
  readonly at: ShardHead
  readonly rows: readonly JournalRow[]
  readonly signatures: readonly (string | null)[]
}

function journalsOf({ rows, placed, state, spanned }: GroupChanges): NewRows[] {
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

function appendStatement({ at: { shard, head }, rows, signatures }: NewRows): pg.QueryConfig {
  const values = [shard, head, JSON.stringify(rows), head + rows.length]
  return signatures.some((signature) => signature !== null)
    ? { name: 'command-place', text: APPEND_AND_PLACE, values: [...values, signatures] }
    : { name: 'append-rows', text: APPEND_ROWS, values }
}

function endStatements({ ended }: GroupChanges): pg.QueryConfig[] {
  if (ended.length === 0) return []
  const values = [JSON.stringify(ended), ended.map(({ order_id }) => order_id)]
  return [{ name: 'command-end', text: END, values }]
}

function accountStatements({ reservedDeltas, requests }: GroupChanges, now: number): pg.QueryConfig[] {
  const statements: pg.QueryConfig[] = []
  const deltas = [...reservedDeltas].filter(([, delta]) => delta !== 0n)
  if (deltas.length > 0) {
    const values = [deltas.map(([userId]) => userId), deltas.map(([, delta]) => String(delta))]
    statements.push({ name: 'command-reserve', text: RESERVE, values })
  }
  if (requests.length > 0) {
    const column = <Key extends keyof (typeof requests)[number]>(key: Key) =>
      requests.map((request) => request[key])
    const values = [column('user_id'), column('client_request_id'), column('digest'), column('answer'), now]
    statements.push({ name: 'command-keep', text: KEEP, values })
  }
  return statements
}
