/** The `faucet_requests` table: the api inserts requests, the keeper signs and finishes them. */
import { sql } from 'kysely'
import type { Db, Tx } from './client.ts'
import { keysOfLane, type RelayerKey } from './relayers.ts'

/** Notified with the request's id when it is inserted. */
export const FAUCET_CHANNEL = 'faucet_requests'
/** Notified with the request's id when it is signed or finished. */
export const FAUCET_ANSWERS_CHANNEL = 'faucet'

/** Why a request failed, in `error`. */
export const FAUCET_ERRORS = {
  empty: 'the key of the faucet cannot pay the transaction',
  reverted: 'the transaction reverted',
  replaced: 'another transaction has used the nonce',
} as const

export interface FaucetLimits {
  /** Most payouts within the window, to an account and to the accounts that request from one network address. */
  readonly perAccount: number
  readonly perAddress: number
  readonly windowMs: number
}

export interface FaucetClaim {
  readonly userId: number
  /** See `network_address`. */
  readonly from: string
  readonly payload: Readonly<Record<string, string>>
  readonly now: number
}

export type ClaimResult =
  | { readonly requestId: number }
  /** `retryAt`: when the oldest payout that counts leaves the window. */
  | { readonly exceeded: 'account' | 'address'; readonly retryAt: number }

/**
 * Stores a request, or returns the account's waiting request. Requests of an account, and of an address, are decided
 * one after another in all processes. Failed requests do not count.
 */
export const claimFaucetRequest = (db: Db, claim: FaucetClaim, limits: FaucetLimits): Promise<ClaimResult> =>
  db.transaction().execute(async (tx) => {
    const { userId, from, now } = claim
    // Holders of an address's lock wait for no account's, so that there is no cycle.
    for (const key of [`faucet account ${userId}`, `faucet address ${from}`])
      await sql`select pg_advisory_xact_lock(hashtextextended(${key}, 0))`.execute(tx)
    const waiting = await tx
      .selectFrom('faucet_requests')
      .select('request_id')
      .where('user_id', '=', userId)
      .where('status', '=', 'REQUESTED')
      .executeTakeFirst()
    if (waiting !== undefined) return { requestId: waiting.request_id }
    for (const [exceeded, column, most] of [
      ['account', 'user_id', limits.perAccount],
      ['address', 'network_address', limits.perAddress],
    ] as const) {
      const oldest = await oldestCounted(
        tx,
        { column, value: column === 'user_id' ? userId : from, most },
        now - limits.windowMs,
      )
      if (oldest !== null) return { exceeded, retryAt: oldest + limits.windowMs }
    }
    return { requestId: await insertFaucetRequest(tx, claim) }
  })

/** The time of the oldest of the newest `most` requests since then; null if there are fewer. */
async function oldestCounted(
  tx: Tx,
  { column, value, most }: { column: 'user_id' | 'network_address'; value: number | string; most: number },
  since: number,
): Promise<number | null> {
  const row = await tx
    .selectFrom('faucet_requests')
    .select('created_at')
    .where(column, '=', value)
    .where('created_at', '>', since)
    .where('status', '<>', 'FAILED')
    .orderBy('created_at', 'desc')
    .offset(most - 1)
    .limit(1)
    .executeTakeFirst()
  return row?.created_at ?? null
}

async function insertFaucetRequest(tx: Tx, { userId, from, payload, now }: FaucetClaim): Promise<number> {
  const { request_id } = await tx
    .insertInto('faucet_requests')
    .values({
      ...{ kind: 'faucet', user_id: userId, network_address: from, payload: JSON.stringify(payload) },
      ...{ status: 'REQUESTED', tx_hash: null, error: null, created_at: now },
    })
    .returning('request_id')
    .executeTakeFirstOrThrow()
  await sql`select pg_notify(${FAUCET_CHANNEL}, ${String(request_id)})`.execute(tx)
  return request_id
}

/** Ends a locked request without a payout. */
export async function failFaucetRequest(tx: Tx, requestId: number, error: string): Promise<void> {
  await tx
    .updateTable('faucet_requests')
    .set({ status: 'FAILED', error })
    .where('request_id', '=', requestId)
    .execute()
  await sql`select pg_notify(${FAUCET_ANSWERS_CHANNEL}, ${String(requestId)})`.execute(tx)
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
export async function finishFaucetRequests(
  db: Db,
  lane: RelayerKey & { readonly name: string },
): Promise<void> {
  await sql`
    with outcomes as (
      select r.request_id, bool_or(t.status = 'MINED' and t.purpose = signed.purpose) as is_mined,
        bool_or(t.status = 'REVERTED') as is_reverted
      from faucet_requests r
      join relayer_transactions signed on signed.tx_hash = r.tx_hash and signed.relayer = any(${keysOfLane(lane)})
      join relayer_transactions t
        on t.relayer = signed.relayer and t.nonce = signed.nonce and t.chain_id = signed.chain_id
      where r.status = 'SIGNED'
      group by r.request_id
      having not bool_or(t.status in ('SIGNED', 'BROADCAST')) and not bool_and(t.status = 'STORED')
    ), ended as (
      update faucet_requests r set
        status = case when is_mined then 'MINED' else 'FAILED' end,
        error = case when is_mined then null when is_reverted then ${FAUCET_ERRORS.reverted}
          else ${FAUCET_ERRORS.replaced} end
      from outcomes where r.request_id = outcomes.request_id and r.status = 'SIGNED'
      returning r.request_id
    )
    select pg_notify(${FAUCET_ANSWERS_CHANNEL}, request_id::text) from ended
  `.execute(db)
}
