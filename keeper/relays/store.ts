/** Relay operations in Postgres. */
import { sql } from 'kysely'
import type { Db, Tx } from '../../db/client.ts'
import { checkFence, type Fence } from '../../db/fence.ts'
import { appendRows, lockShard } from '../../db/journal.ts'
import { changeRelay, lockRelay, type RelayOperation } from '../../db/relay-operations.ts'
import { insertTransactions, keysOfLane } from '../../db/relayers.ts'
import type { RelayChanged } from '../../domain/journal/accounts-row.ts'
import { ACCOUNTS_SHARD } from '../../domain/journal/journal-row.ts'
import { isOpenRelay } from '../../domain/relays/operation.ts'
import { failedRelay, relaying, requeuedRelay } from '../../domain/relays/stored-relay.ts'
import type { Clock } from '../../service/clock.ts'
import { asSigned } from '../relayer/stored-transaction.ts'
import type { RelayStore, UnexecutedRelay } from './ports.ts'

/** Of a transaction that executes an owner's request. */
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

export function createRelayStore(db: Db, clock: Clock): RelayStore {
  /** Changes the operation if its status is still that of `seen`, in one transaction under the fence and the lock of `accounts`. */
  const change = (
    seen: RelayOperation,
    fence: Fence,
    write: (tx: Tx, operation: RelayOperation) => Promise<RelayChanged>,
  ): Promise<boolean> =>
    db.transaction().execute(async (tx) => {
      await checkFence(tx, fence)
      const shard = await lockShard(tx, ACCOUNTS_SHARD)
      const operation = await lockRelay(tx, seen)
      const isSame =
        operation.status === seen.status &&
        operation.relayer === seen.relayer &&
        operation.relayer_nonce === seen.relayer_nonce
      if (!isSame || !isOpenRelay(operation.status)) return false
      await appendRows(tx, shard, [await write(tx, operation)])
      return true
    })

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

    async storeSigned(operation, lane, fence, { hash, raw, nonce, signedAt }) {
      const transaction = { hash, raw, nonce, purpose: RELAY_PURPOSE, signedAt }
      const signed = { relayer: lane.relayer, nonce, hash }
      const isStored = await change(operation, fence, async (tx, present) => {
        await insertTransactions(tx, lane, [transaction])
        return changeRelay(tx, present, relaying(signed, signedAt))
      })
      return isStored ? asSigned(lane, transaction) : null
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

    async fail(operation, fence, end) {
      await change(operation, fence, (tx, present) => changeRelay(tx, present, failedRelay(end, clock.now())))
    },

    async requeue(operation, fence) {
      await change(operation, fence, (tx, present) => changeRelay(tx, present, requeuedRelay(clock.now())))
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
