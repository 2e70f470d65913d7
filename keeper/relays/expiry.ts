/**
 * Ends relay operations whose deadline has passed on the confirmed chain. Needs no key, so that it runs in every keeper: an operation also
 * ends if no process runs the relayer lane any more.
 */
import type { Fence } from '../../db/fence.ts'
import type { Logger } from '../../service/logger.ts'
import type { RelayStore } from './ports.ts'

export interface RelayExpiryPorts {
  readonly store: Pick<RelayStore, 'expired' | 'fail'>
  readonly logger: Logger
  /** Blocks on top of one that is later than the deadline. */
  readonly confirmations: number
}

/** Most operations of one pass, the earliest deadlines first. */
const PER_PASS = 100
const EXPIRED = { failure: 'EXPIRED', reason: 'the deadline of the request has passed' } as const

/** One pass; safe to repeat. */
export const createRelayExpiry =
  ({ store, logger, confirmations }: RelayExpiryPorts) =>
  async (fence: Fence): Promise<void> => {
    for (const operation of await store.expired(confirmations, PER_PASS)) {
      await store.fail(operation, fence, EXPIRED)
      const { operation_id, kind } = operation
      logger.warn({ operation_id, kind, ...EXPIRED }, 'relay expired')
    }
  }
