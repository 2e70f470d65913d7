/** Adjustment attempts with the engine as their owner. Reads stay on the tables; the bytes are the worker's own. */
import { acceptTransactions } from '../../db/relayers.ts'
import { ask } from '../engine/link/engine.ts'
import { type EngineParts, storeBytes, WORKER_BUDGET_MS, withoutRefused } from '../relayer/bytes-store.ts'
import { asSigned } from '../relayer/stored-transaction.ts'
import type { AdjustmentStore, NewSignature } from './ports.ts'
import { ADJUSTMENT_PURPOSE, createAdjustmentStore } from './store.ts'

const toTransaction = ({ hash, raw, nonce, signedAt }: NewSignature) => ({
  hash,
  raw,
  nonce,
  purpose: ADJUSTMENT_PURPOSE,
  signedAt,
})

export function createEngineAdjustmentStore(parts: EngineParts): AdjustmentStore {
  const { db, engine } = parts
  const tables = createAdjustmentStore(db)
  return {
    open: tables.open,
    overdue: tables.overdue,
    state: tables.state,

    async storeSigned(lane, fence, signatures) {
      const marketId = signatures[0]?.attempt.marketId
      if (marketId === undefined) return []
      const transactions = signatures.map(toTransaction)
      await storeBytes(parts, lane, fence, transactions)
      const signed = signatures.map(({ attempt: { adjustmentId }, nonce, hash, asOf, maxRemovable }) => ({
        adjustmentId,
        nonce,
        hash,
        asOf,
        maxRemovable,
      }))
      const answer = await ask<'adjustments_signed'>(
        engine,
        { kind: 'adjustments_signed', marketId, relayer: lane.relayer, signatures: signed },
        WORKER_BUDGET_MS,
      )
      const accepted = answer.kind === 'hashes' ? answer.hashes : []
      await acceptTransactions(db, accepted)
      return transactions
        .filter(({ hash }) => accepted.includes(hash))
        .map((transaction) => asSigned(lane, transaction))
    },

    async noteSubmitted(attempts) {
      const marketId = attempts[0]?.marketId
      if (marketId === undefined) return
      const adjustmentIds = attempts.map(({ adjustmentId }) => adjustmentId)
      const command = { kind: 'adjustments_submitted', marketId, adjustmentIds } as const
      await ask<'adjustments_submitted'>(engine, command, WORKER_BUDGET_MS)
    },

    async fail({ adjustmentId, marketId, status: seen }, _fence, { status, kind: failure, reason }) {
      const of = { kind: 'fail_adjustment', marketId, adjustmentId } as const
      await ask<'fail_adjustment'>(engine, { ...of, seen, status, failure, reason }, WORKER_BUDGET_MS)
    },

    transactions: async (lane, nonces) => withoutRefused(parts, await tables.transactions(lane, nonces)),
  }
}
