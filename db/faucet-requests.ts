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

/** Ends signed requests whose transaction by this relayer has a receipt. */
export async function finishFaucetRequests(db: Db, relayer: string): Promise<void> {
  await sql`
    with ended as (
      update faucet_requests r set
        status = case t.status when 'MINED' then 'MINED' else 'FAILED' end,
        error = case t.status when 'MINED' then null else 'the transaction reverted' end
      from relayer_transactions t
      where r.status = 'SIGNED' and t.tx_hash = r.tx_hash and t.relayer = ${relayer} and t.status in ('MINED', 'REVERTED')
      returning r.request_id
    )
    select pg_notify(${FAUCET_ANSWERS_CHANNEL}, request_id::text) from ended
  `.execute(db)
}
