/** Faucet requests in Postgres: read, signed and finished. */
import type { Db } from '../../db/client.ts'
import {
  FAUCET_ERRORS,
  failFaucetRequest,
  finishFaucetRequests,
  lockFaucetRequest,
  signFaucetRequest,
} from '../../db/faucet-requests.ts'
import { checkFence } from '../../db/fence.ts'
import { insertTransactions } from '../../db/relayers.ts'
import { constant } from '../../db/values.ts'
import type { Address } from '../../domain/units.ts'
import { asSigned } from '../relayer/stored-transaction.ts'
import type { FaucetRequest, FaucetStore } from './ports.ts'

const toRequest = (row: { request_id: number; payload: Record<string, string> }): FaucetRequest => ({
  requestId: row.request_id,
  to: row.payload.wallet as Address,
  collateral: row.payload.collateral === undefined ? null : BigInt(row.payload.collateral),
  gas: row.payload.gas === undefined ? null : BigInt(row.payload.gas),
})

export const createFaucetStore = (db: Db): FaucetStore => ({
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

  storeSigned: ({ requestId }, lane, fence, { firstNonce, signedAt, ...signed }) =>
    db.transaction().execute(async (tx) => {
      await checkFence(tx, fence)
      if (!(await lockFaucetRequest(tx, requestId))) return []
      const transactions = signed.transactions.map(({ hash, raw }, at) => ({
        ...{ hash, raw, nonce: firstNonce + at, purpose: 'faucet', signedAt },
      }))
      await insertTransactions(tx, lane, transactions)
      await signFaucetRequest(tx, requestId, transactions[0]?.hash ?? null)
      return transactions.map((transaction) => asSigned(lane, transaction))
    }),

  refuse: ({ requestId }, fence) =>
    db.transaction().execute(async (tx) => {
      await checkFence(tx, fence)
      if (await lockFaucetRequest(tx, requestId)) await failFaucetRequest(tx, requestId, FAUCET_ERRORS.empty)
    }),

  finish: (lane) => finishFaucetRequests(db, lane),
})
