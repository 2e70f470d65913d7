/**
 * Ends adjustments that the lane `adjust` did not end in time, for example without gas. It runs in every keeper and
 * needs no key: an attempt in flight keeps its account out of batches.
 */
import type { Fence } from '../../db/fence.ts'
import { isOutdated, PREPARED_LIFETIME } from '../../domain/positions/adjustment-signing.ts'
import type { Address, Millis } from '../../domain/units.ts'
import type { Clock } from '../../service/clock.ts'
import type { Logger } from '../../service/logger.ts'
import type { Chain, Head } from '../ports.ts'
import { NOOP_PURPOSE } from '../relayer/stored-transaction.ts'
import { type AdjustmentStore, type OpenAttempt, UNMINED } from './ports.ts'

export interface ExpiryPorts {
  readonly adjustments: Pick<AdjustmentStore, 'overdue' | 'transactions' | 'fail'>
  readonly chain: Pick<Chain, 'chainId' | 'head' | 'receipt'>
  readonly clock: Clock
  readonly logger: Logger
  /** Blocks on top of the first block whose time makes the transaction revert. */
  readonly confirmations: number
}

/** The lane ends its attempts by itself before this time is over, with a more precise reason. */
const GRACE_MS = 10_000
/** Most attempts of one pass, the oldest first. */
const ATTEMPTS_PER_PASS = 100

/** One pass; safe to repeat. */
export function createExpiry(ports: ExpiryPorts): (fence: Fence) => Promise<void> {
  const { adjustments, chain, clock, logger, confirmations } = ports
  /** The block at whose time the attempt was first seen to be dead. */
  let deadSince: ReadonlyMap<string, number> = new Map()

  /** True if the confirmed chain has not executed the attempt and cannot any more. */
  async function isEnded(attempt: OpenAttempt, head: Head, since: number): Promise<boolean> {
    if (head.block < since + confirmations) return false
    const { relayer, relayerNonce } = attempt
    const lane = { name: '', relayer: relayer as Address, chainId: chain.chainId }
    for (const { hash, purpose } of await adjustments.transactions(lane, [relayerNonce as number])) {
      // The indexer ends attempts that the chain has executed.
      if (purpose !== NOOP_PURPOSE && (await chain.receipt(hash))?.succeeded) return false
    }
    return true
  }

  async function expire(fence: Fence, attempt: OpenAttempt, reason: string): Promise<void> {
    await adjustments.fail(attempt, fence, { ...UNMINED, reason }, clock.now())
    const { adjustmentId, marketId } = attempt
    logger.warn({ adjustment_id: adjustmentId, market_id: marketId, reason }, 'overdue adjustment aborted')
  }

  return async (fence) => {
    const created = (clock.now() - PREPARED_LIFETIME - GRACE_MS) as Millis
    const overdue = await adjustments.overdue(created, ATTEMPTS_PER_PASS)
    const sent = overdue.filter(({ relayerNonce }) => relayerNonce !== null)
    for (const attempt of overdue) {
      if (attempt.relayerNonce === null)
        await expire(fence, attempt, `not executed within ${PREPARED_LIFETIME / 1000} s: not signed`)
    }
    const seen = new Map<string, number>()
    const head = sent.length === 0 ? null : await chain.head()
    for (const attempt of sent) {
      if (head === null || !isOutdated(attempt.asOf as Millis, (head.time - GRACE_MS) as Millis)) continue
      const since = deadSince.get(attempt.adjustmentId) ?? head.block
      seen.set(attempt.adjustmentId, since)
      if (await isEnded(attempt, head, since)) await expire(fence, attempt, UNMINED.reason)
    }
    deadSince = seen
  }
}
