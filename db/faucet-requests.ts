/** The `faucet_requests` table: the api inserts requests, the keeper signs and finishes them. */
import { sql } from 'kysely'
import type { Db, Tx } from './client.ts'

/** Notified with the request's id when it is inserted. */
export const FAUCET_CHANNEL = 'faucet_requests'
/** Notified with the request's id when it is signed or finished. */
const FAUCET_ANSWERS_CHANNEL = 'faucet'

export async function insertFaucetRequest(
  db: Db,
  userId: number,
  payload: Readonly<Record<string, string>>,
  now: number,
): Promise<number> {
  return db.transaction().execute(async (tx) => {
    const { request_id } = await tx
      .insertInto('faucet_requests')
      .values({
        kind: 'faucet',
        user_id: userId,
        payload: JSON.stringify(payload),
        status: 'REQUESTED',
        tx_hash: null,
        error: null,
        created_at: now,
      })
      .returning('request_id')
      .executeTakeFirstOrThrow()
    await sql`select pg_notify(${FAUCET_CHANNEL}, ${String(request_id)})`.execute(tx)
    return request_id
  })
}

/** Locks a request that is not signed yet. False if another process has signed it. */
export async function lockFaucetRequest(tx: Tx, requestId: number): Promise<boolean> {
  const request = await tx
    .selectFrom('faucet_requests')
    .select('request_id')
    .where('request_id', '=', requestId)
    .where('status', '=', 'REQUESTED')
    .forUpdate()
    .executeTakeFirst()
  return request !== undefined
}

/** Marks a locked request as signed. `hash`: the transaction that stands for it. */
export async function signFaucetRequest(tx: Tx, requestId: number, hash: string | null): Promise<void> {
  await tx
    .updateTable('faucet_requests')
    .set({ status: 'SIGNED', tx_hash: hash })
    .where('request_id', '=', requestId)
    .execute()
  await sql`select pg_notify(${FAUCET_ANSWERS_CHANNEL}, ${String(requestId)})`.execute(tx)
}

/** Ends signed requests whose nonce this relayer has used. A replacement at a higher fee counts as the request's transaction. */
export async function finishFaucetRequests(db: Db, relayer: string): Promise<void> {
  await sql`
    with outcomes as (
      select r.request_id, bool_or(t.status = 'MINED' and t.purpose = signed.purpose) as is_mined,
        bool_or(t.status = 'REVERTED') as is_reverted
      from faucet_requests r
      join relayer_transactions signed on signed.tx_hash = r.tx_hash and signed.relayer = ${relayer}
      join relayer_transactions t
        on t.relayer = signed.relayer and t.nonce = signed.nonce and t.chain_id = signed.chain_id
      where r.status = 'SIGNED'
      group by r.request_id
      having not bool_or(t.status in ('SIGNED', 'BROADCAST'))
    ), ended as (
      update faucet_requests r set
        status = case when is_mined then 'MINED' else 'FAILED' end,
        error = case when is_mined then null when is_reverted then 'the transaction reverted'
          else 'another transaction has used the nonce' end
      from outcomes where r.request_id = outcomes.request_id and r.status = 'SIGNED'
      returning r.request_id
    )
    select pg_notify(${FAUCET_ANSWERS_CHANNEL}, request_id::text) from ended
  `.execute(db)
}
