/** The writes of a group: a few statements, whatever its size. */
import type pg from 'pg'
import { APPEND_ROWS, type ShardHead } from '../../indexer/db/shard-log.ts'
import type { Draft } from './draft.ts'
import { pipelined } from './pipelined.ts'

/** The log row of a placement holds all that the order's row does, but for the signature. */
const PLACE = `
  insert into orders (
    order_id, market_id, seq, user_id, maker, signer, hash, signature, salt, side, type, price, quantity, trigger, leverage,
    reduce_only, expiration, alive_until, status, openable, reserved_price, reserved, accepted_at
  )
  select
    r.order_id, split_part(r.order_id, '-', 1)::integer, split_part(r.order_id, '-', 2)::bigint, r.user_id, r.maker, r.signer,
    r.hash, r.signature, r.salt, r.side, r.type, r.price, r.quantity, r.trigger, r.leverage, r.reduce_only, r.expiration,
    r.alive_until, r.status, r.openable, r.reserved_price, r.reserved, r.accepted_at
  from rows from (
    jsonb_to_recordset($1::jsonb) as (
      order_id text, user_id bigint, maker text, signer text, hash text, salt bigint, side text, type text, price bigint,
      quantity bigint, trigger bigint, leverage integer, reduce_only boolean, expiration bigint, alive_until bigint,
      status text, openable bigint, reserved_price bigint, reserved numeric, accepted_at bigint
    ),
    unnest($2::text[])
  ) as r (
    order_id, user_id, maker, signer, hash, salt, side, type, price, quantity, trigger, leverage, reduce_only, expiration,
    alive_until, status, openable, reserved_price, reserved, accepted_at, signature
  )
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

/** How far a shard's log has come. */
export interface NewHead {
  readonly shard: string
  readonly head: number
}

/** Stores what was decided, inside the group's transaction. Returns the new heads of the shards that have new rows. */
export async function writeGroup(client: pg.ClientBase, draft: Draft, now: number): Promise<NewHead[]> {
  const statements = [...orderStatements(draft), ...accountStatements(draft, now)]
  const heads: NewHead[] = []
  const append = ({ shard, head }: ShardHead, rows: readonly unknown[]): void => {
    if (rows.length === 0) return
    const values = [shard, head, JSON.stringify(rows), head + rows.length]
    statements.push({ name: 'append-rows', text: APPEND_ROWS, values })
    heads.push({ shard, head: head + rows.length })
  }
  for (const [marketId, rows] of draft.rows) append(draft.market(marketId).head, rows)
  if (draft.state.accounts !== null) append(draft.state.accounts, draft.spanned)
  await pipelined(statements.map((statement) => client.query(statement)))
  return heads
}

function orderStatements({ placed, ended }: Draft): pg.QueryConfig[] {
  const statements: pg.QueryConfig[] = []
  if (placed.length > 0) {
    const values = [JSON.stringify(placed.map(({ row }) => row)), placed.map(({ signature }) => signature)]
    statements.push({ name: 'intake-place', text: PLACE, values })
  }
  if (ended.length > 0) {
    const values = [JSON.stringify(ended), ended.map(({ order_id }) => order_id)]
    statements.push({ name: 'intake-end', text: END, values })
  }
  return statements
}

function accountStatements({ reservedDeltas, kept }: Draft, now: number): pg.QueryConfig[] {
  const statements: pg.QueryConfig[] = []
  const deltas = [...reservedDeltas].filter(([, delta]) => delta !== 0n)
  if (deltas.length > 0) {
    const values = [deltas.map(([userId]) => userId), deltas.map(([, delta]) => String(delta))]
    statements.push({ name: 'intake-reserve', text: RESERVE, values })
  }
  if (kept.length > 0) {
    const column = <Key extends keyof (typeof kept)[number]>(key: Key) => kept.map((request) => request[key])
    const values = [column('user_id'), column('client_request_id'), column('digest'), column('answer'), now]
    statements.push({ name: 'intake-keep', text: KEEP, values })
  }
  return statements
}
