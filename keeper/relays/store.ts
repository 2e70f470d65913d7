/** Relay operations with the engine as their owner. Reads stay on the tables; the bytes are the worker's own. */
import { sql } from 'kysely'
import { acceptTransactions, keysOfLane } from '../../db/relayers.ts'
import type { SeenRelay } from '../../domain/exchange/decide/chain/relay-lane.ts'
import { ask } from '../engine/link/engine.ts'
import { type EngineParts, storeBytes, WORKER_BUDGET_MS } from '../relayer/bytes-store.ts'
import { asSigned } from '../relayer/stored-transaction.ts'
import type { RelayOperation, RelayStore, UnexecutedRelay } from './ports.ts'

/** Purpose of a transaction that executes an owner's request. */
export const RELAY_PURPOSE = 'relay'

/** Both statuses, as constants: the partial index of open operations serves them. */
const OPEN = sql.raw(`o.status in ('QUEUED', 'RELAYING')`)

interface UnexecutedRow extends RelayOperation {
  readonly raw: string | null
  readonly reverted_in: number | null
}

const toUnexecuted = ({ raw, reverted_in, ...operation }: UnexecutedRow): UnexecutedRelay => ({
  operation,
  reverted: raw === null ? null : { raw: raw as `0x${string}`, block: reverted_in as number },
})

const seenOf = ({ operation_id, status, relayer, relayer_nonce }: RelayOperation): SeenRelay => ({
  operationId: operation_id,
  status,
  relayer,
  relayerNonce: relayer_nonce,
})

export function createRelayStore(parts: EngineParts): RelayStore {
  const { db, engine } = parts
  return {
    async ready(limit) {
      const { rows } = await sql<RelayOperation>`
        select o.* from relay_operations o
        left join forwarder_nonces n on n.signer = o.owner
        where ${OPEN} and o.status = 'QUEUED' and o.nonce = coalesce(n.next_nonce, 0)
        order by o.created_at limit ${limit}
      `.execute(db)
      return rows
    },

    async storeSigned({ operation_id: operationId }, lane, fence, { hash, raw, nonce, signedAt }) {
      const transaction = { hash, raw, nonce, purpose: RELAY_PURPOSE, signedAt }
      await storeBytes(parts, lane, fence, [transaction])
      const command = { kind: 'relay_signed', operationId, relayer: lane.relayer, nonce, hash } as const
      const answer = await ask<'relay_signed'>(engine, command, WORKER_BUDGET_MS)
      if (answer.kind !== 'done') return null
      await acceptTransactions(db, [hash])
      return asSigned(lane, transaction)
    },

    async unexecuted(lane, limit) {
      const { rows } = await sql<UnexecutedRow>`
        select o.*, used.raw, used.block as reverted_in
        from relay_operations o
        cross join lateral (
          select bool_or(t.status in ('STORED', 'SIGNED', 'BROADCAST') or (t.status = 'MINED' and t.purpose = ${RELAY_PURPOSE})) as may_execute,
            max(t.raw) filter (where t.status = 'REVERTED') as raw, max(t.block) filter (where t.status = 'REVERTED') as block
          from relayer_transactions t
          where t.relayer = o.relayer and t.chain_id = ${lane.chainId} and t.nonce = o.relayer_nonce
        ) used
        where ${OPEN} and o.status = 'RELAYING' and o.relayer = any(${keysOfLane(lane)}) and not used.may_execute
          and (used.raw is null or used.block < (select next_block from chain_progress where chain_id = ${lane.chainId}))
        limit ${limit}
      `.execute(db)
      return rows.map(toUnexecuted)
    },

    async fail(operation, _fence, { failure, reason }) {
      const command = { kind: 'fail_relay', seen: seenOf(operation), failure, reason } as const
      await ask<'fail_relay'>(engine, command, WORKER_BUDGET_MS)
    },

    async requeue(operation) {
      const command = { kind: 'requeue_relay', seen: seenOf(operation) } as const
      await ask<'requeue_relay'>(engine, command, WORKER_BUDGET_MS)
    },

    async expired(confirmations, limit) {
      const { rows } = await sql<RelayOperation>`
        select o.* from relay_operations o
        where ${OPEN} and o.deadline < (
          select b.timestamp from chain_blocks b
          where b.number < (select min(next_block) from chain_progress) - ${confirmations}::bigint
          order by b.number desc limit 1
        )
        order by o.deadline limit ${limit}
      `.execute(db)
      return rows
    },
  }
}
