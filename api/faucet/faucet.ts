/** The faucet: the api stores the request, the keeper signs and sends the payout, the api waits for its hash. */
import type { Db } from '../../db/client.ts'
import { insertFaucetRequest } from '../../db/faucet-requests.ts'
import type { Clock } from '../../service/clock.ts'
import type { Caller } from '../auth/caller.ts'
import { ApiError } from '../errors.ts'

export interface FaucetGrant {
  readonly tx_hash: string
  readonly request_id: number
  readonly wallet: string
  readonly status: 'SIGNED' | 'MINED'
}

export type Faucet = (caller: Caller) => Promise<FaucetGrant>

const POLL_MS = 50

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
    const request_id = await insertFaucetRequest(db, caller.userId, { wallet: caller.address }, clock.now())
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
