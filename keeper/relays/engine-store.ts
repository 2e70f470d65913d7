/** Relay operations with the engine as their owner. Reads stay on the tables; the bytes are the worker's own. */
import { acceptTransactions } from '../../db/relayers.ts'
import type { SeenRelay } from '../../domain/exchange/decide/chain/relay-lane.ts'
import { systemClock } from '../../service/clock.ts'
import { ask } from '../engine/link/engine.ts'
import { type EngineParts, storeBytes, WORKER_BUDGET_MS } from '../relayer/bytes-store.ts'
import { asSigned } from '../relayer/stored-transaction.ts'
import type { RelayOperation, RelayStore } from './ports.ts'
import { createRelayStore, RELAY_PURPOSE } from './store.ts'

const seenOf = ({ operation_id, status, relayer, relayer_nonce }: RelayOperation): SeenRelay => ({
  operationId: operation_id,
  status,
  relayer,
  relayerNonce: relayer_nonce,
})

export function createEngineRelayStore(parts: EngineParts): RelayStore {
  const { db, engine } = parts
  const tables = createRelayStore(db, systemClock)
  return {
    ready: tables.ready,

    async storeSigned({ operation_id: operationId }, lane, fence, { hash, raw, nonce, signedAt }) {
      const transaction = { hash, raw, nonce, purpose: RELAY_PURPOSE, signedAt }
      await storeBytes(parts, lane, fence, [transaction])
      const command = { kind: 'relay_signed', operationId, relayer: lane.relayer, nonce, hash } as const
      const answer = await ask<'relay_signed'>(engine, command, WORKER_BUDGET_MS)
      if (answer.kind !== 'done') return null
      await acceptTransactions(db, [hash])
      return asSigned(lane, transaction)
    },

    unexecuted: tables.unexecuted,

    async fail(operation, _fence, { failure, reason }) {
      const command = { kind: 'fail_relay', seen: seenOf(operation), failure, reason } as const
      await ask<'fail_relay'>(engine, command, WORKER_BUDGET_MS)
    },

    async requeue(operation) {
      const command = { kind: 'requeue_relay', seen: seenOf(operation) } as const
      await ask<'requeue_relay'>(engine, command, WORKER_BUDGET_MS)
    },

    expired: tables.expired,
  }
}
