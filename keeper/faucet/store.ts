/** Faucet payouts with the engine as the owner of nonces. Requests and bytes are the faucet's own. */
import {
  FAUCET_ERRORS,
  failFaucetRequest,
  finishFaucetRequests,
  lockFaucetRequest,
  signFaucetRequest,
} from '../../db/faucet-requests.ts'
import { checkFence } from '../../db/fence.ts'
import { storeTransactions } from '../../db/relayers.ts'
import { constant } from '../../db/values.ts'
import type { Address } from '../../domain/units.ts'
import { acceptBytes, type EngineParts } from '../relayer/bytes-store.ts'
import type { StoredTransaction } from '../relayer/ports.ts'
import type { FaucetRequest, FaucetStore } from './ports.ts'

const toRequest = (row: { request_id: number; payload: Record<string, string> }): FaucetRequest => ({
  requestId: row.request_id,
  to: row.payload.wallet as Address,
  collateral: row.payload.collateral === undefined ? null : BigInt(row.payload.collateral),
  gas: row.payload.gas === undefined ? null : BigInt(row.payload.gas),
})

export function createFaucetStore(parts: EngineParts): FaucetStore {
  const { db } = parts
  return {
    async requested(limit) {
      const rows = await db
        .selectFrom('faucet_requests')
        .select(['request_id', 'payload'])
        .where('status', '=', constant('REQUESTED'))
        .orderBy('request_id')
        .limit(limit)
        .execute()
      return rows.map(toRequest)
    },

    /** A request is paid once: it is marked with its bytes. If the process ends before the engine accepts them, the lane offers them again. */
    async storeSigned({ requestId }, lane, fence, { firstNonce, signedAt, ...signed }) {
      const transactions = signed.transactions.map(({ hash, raw }, at) => ({
        hash,
        raw,
        nonce: firstNonce + at,
        purpose: 'faucet',
        signedAt,
      }))
      const isStored = await db.transaction().execute(async (tx) => {
        await checkFence(tx, fence)
        if (!(await lockFaucetRequest(tx, requestId))) return false
        await storeTransactions(tx, lane, transactions)
        await signFaucetRequest(tx, requestId, transactions[0]?.hash ?? null)
        return true
      })
      const accepted: StoredTransaction[] = []
      if (!isStored) return accepted
      for (const transaction of transactions)
        accepted.push(await acceptBytes(parts, lane, transaction, { action: null, attempt: 1 }))
      return accepted
    },

    refuse: ({ requestId }, fence) =>
      db.transaction().execute(async (tx) => {
        await checkFence(tx, fence)
        if (await lockFaucetRequest(tx, requestId))
          await failFaucetRequest(tx, requestId, FAUCET_ERRORS.empty)
      }),

    finish: (lane) => finishFaucetRequests(db, lane),
  }
}
