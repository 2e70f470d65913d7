/** The writes of a group: a few statements, whatever its size. */
import type pg from 'pg'
import type { OrderPlaced } from '../../domain/log.ts'
import { APPEND_ROWS, type ShardHead } from '../../indexer/db/shard-log.ts'
import type { Writes } from './decide.ts'
import { pipelined } from './pipelined.ts'

/** The log row of a placement holds all that the order's row does, but for the signature. */
const PLACE = `
  insert into orders (
    order_id, market_id, seq, user_id, maker, signer, hash, signature, salt, side, type, price, quantity, trigger, leverage,
    reduce_only, expiration, alive_until, status, openable, reserved_price, reserved, accepted_at
  )
  select
    r.order_id, $1, split_part(r.order_id, '-', 2)::bigint, r.user_id, r.maker, r.signer, r.hash, r.signature, r.salt, r.side,
    r.type, r.price, r.quantity, r.trigger, r.leverage, r.reduce_only, r.expiration, r.alive_until, r.status, r.openable,
    r.reserved_price, r.reserved, r.accepted_at
  from rows from (
    jsonb_to_recordset($2::jsonb) as (
      order_id text, user_id bigint, maker text, signer text, hash text, salt bigint, side text, type text, price bigint,
      quantity bigint, trigger bigint, leverage integer, reduce_only boolean, expiration bigint, alive_until bigint,
      status text, openable bigint, reserved_price bigint, reserved numeric, accepted_at bigint
    ),
    unnest($3::text[])
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

/** Stores what was decided, inside the group's transaction. Returns the log's new head. */
export async function writeGroup(
  client: pg.ClientBase,
  marketId: number,
  head: ShardHead,
  { rows, signatures, ended, reservedDeltas }: Writes,
): Promise<number> {
  if (rows.length === 0) return head.head
  const placed = rows.filter((row): row is OrderPlaced => row.kind === 'order_placed')
  const newHead = head.head + rows.length
  const statements: pg.QueryConfig[] = []
  if (placed.length > 0) {
    const values = [marketId, JSON.stringify(placed), signatures]
    statements.push({ name: 'intake-place', text: PLACE, values })
  }
  if (ended.length > 0) {
    const values = [JSON.stringify(ended), ended.map(({ order_id }) => order_id)]
    statements.push({ name: 'intake-end', text: END, values })
  }
  if (reservedDeltas.size > 0) {
    const values = [[...reservedDeltas.keys()], [...reservedDeltas.values()].map(String)]
    statements.push({ name: 'intake-reserve', text: RESERVE, values })
  }
  const values = [head.shard, head.head, JSON.stringify(rows), newHead]
  statements.push({ name: 'append-rows', text: APPEND_ROWS, values })
  await pipelined(statements.map((statement) => client.query(statement)))
  return newHead
}
