/** Voids the batches of a failed settlement: finds the culprit, returns the other orders to the book, ends the culprit's orders. */

import type { Fence } from '../../db/fence.ts'
import { reservingSpec } from '../../domain/market/in-force.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import { FLAT } from '../../domain/positions/position.ts'
import { type Culprit, planVoid } from '../../domain/settlement/void-batch.ts'
import type { Quote } from '../../domain/units.ts'
import type { Clock } from '../../service/clock.ts'
import type { Logger } from '../../service/logger.ts'
import type { VoidStore } from './ports.ts'

export interface VoidPorts {
  readonly voids: VoidStore
  readonly clock: Clock
  readonly logger: Logger
}

/** The first action that will not be mined, and what the chain's error names. */
export interface Failure {
  readonly queueNo: number
  readonly cause: Culprit
  /** The reverted transaction and the block that reverted it; null if none was mined. */
  readonly reverted: { readonly hash: string; readonly block: number } | null
}

const NO_FUNDS = { free: 0n as Quote, reserved: 0n as Quote }

/**
 * Returns false, and changes nothing, until the indexer has recorded every action before the failure: positions are reset to the mined
 * ones.
 */
export async function voidFrom(
  ports: VoidPorts,
  spec: MarketSpec,
  fence: Fence,
  { queueNo, cause: culprit, reverted }: Failure,
): Promise<boolean> {
  const at = ports.clock.now()
  let isVoided = false
  await ports.voids.transaction(spec.marketId, fence, queueNo, async (transaction) => {
    const isUnnamed = culprit.kind === 'unnamed'
    const { batches, orders, mined, funds, isAfterUnnamed } = transaction
    const voiding = planVoid({
      spec: reservingSpec(spec, transaction.reservedFee),
      at,
      culprit,
      batches,
      orders,
      positions: (account) => mined.get(account) ?? FLAT,
      fundsOf: (account) => funds.get(account) ?? NO_FUNDS,
    })
    const cancelOnly = isUnnamed && isAfterUnnamed
    await transaction.save({ ...voiding, at, error: culprit.error, isUnnamed, cancelOnly })
    isVoided = true
    const details = {
      market_id: spec.marketId,
      batch_ids: batches.map(({ batchId }) => batchId),
      tx_hash: reverted?.hash ?? null,
      culprit: culprit.kind,
      error: culprit.error,
    }
    if (cancelOnly)
      ports.logger.error(
        details,
        'two settlements in a row reverted without a culprit: market set to cancel-only',
      )
    else ports.logger.error(details, 'settlement failed: batches voided')
  })
  return isVoided
}
