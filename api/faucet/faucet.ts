/** The faucet: the api writes down who asks, the keeper signs and sends, the api waits for the hash. */
import { sql } from 'kysely'
import type { Db } from '../../db/client.ts'
import type { Clock } from '../../service/clock.ts'
import type { Caller } from '../auth/caller.ts'
import { ApiError } from '../errors.ts'

/** Tells the keeper that there is something to relay. */
export const FAUCET_CHANNEL = 'faucet_requests'

export interface FaucetGrant {
  readonly tx_hash: string
  readonly request_id: number
  readonly wallet: string
  readonly status: 'SIGNED' | 'MINED'
}

export type Faucet = (caller: Caller) => Promise<FaucetGrant>

const POLL_MS = 50

async function request(db: Db, { userId, address }: Caller, now: number): Promise<number> {
  return db.transaction().execute(async (tx) => {
    const { request_id } = await tx
      .insertInto('faucet_requests')
      .values({
        kind: 'faucet',
        user_id: userId,
        payload: JSON.stringify({ wallet: address }),
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

const find = (db: Db, requestId: number) =>
  db
    .selectFrom('faucet_requests')
    .select(['status', 'tx_hash', 'error'])
    .where('request_id', '=', requestId)
    .executeTakeFirstOrThrow()

export function createFaucet(ports: { readonly db: Db; readonly clock: Clock }, waitMs: number): Faucet {
  const { db, clock } = ports
  return async (caller) => {
    const deadline = clock.now() + waitMs
    const request_id = await request(db, caller, clock.now())
    while (clock.now() < deadline) {
      const { status, tx_hash } = await find(db, request_id)
      if (status === 'FAILED') throw new ApiError('FAUCET_FAILED', { faucet_request_id: request_id }, '5')
      if (tx_hash !== null && status !== 'REQUESTED')
        return { tx_hash, request_id, wallet: caller.address, status }
      await new Promise((resolve) => setTimeout(resolve, POLL_MS))
    }
    throw new ApiError('FAUCET_PENDING', { faucet_request_id: request_id }, '2')
  }
}
