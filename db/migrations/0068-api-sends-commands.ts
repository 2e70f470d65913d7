import { type Kysely, sql } from 'kysely'

/** The api sends what changes the exchange to the engine. It keeps the right to delete stored requests that are old. */
const FORMER_RIGHTS = {
  shards: 'update (head)',
  journal: 'insert',
  users: 'insert (address, created_at)',
  accounts: 'insert (user_id), update (reserved)',
  orders: `
    insert (order_id, market_id, seq, user_id, maker, signer, hash, signature, salt, side, type, price, quantity, trigger, leverage,
      reduce_only, expiration, alive_until, status, openable, reserved_price, reserved, accepted_at, client_order_id),
    update (status, status_reason, closing_reason, closed_by, note, ended_at, openable, reserved)
  `,
  relay_operations: `
    insert (operation_id, user_id, kind, session_key, market_id, minimum, owner, target, gas, nonce, deadline, data, signature, status,
      created_at, updated_at)
  `,
  cancel_switches: 'insert, update (timeout_seconds, armed_at, fire_at), delete',
  connection_switches: 'insert, update (timeout_seconds, fire_at), delete',
  adjustment_attempts: 'insert',
  client_requests: 'insert',
}

export async function up(db: Kysely<unknown>): Promise<void> {
  const { client_requests, ...others } = FORMER_RIGHTS
  await sql
    .raw(`
      revoke insert, update, delete on ${Object.keys(others).join(', ')} from clearbatch_api;
      revoke ${client_requests} on client_requests from clearbatch_api;
    `)
    .execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  for (const [table, rights] of Object.entries(FORMER_RIGHTS))
    await sql.raw(`grant ${rights} on ${table} to clearbatch_api`).execute(db)
}
