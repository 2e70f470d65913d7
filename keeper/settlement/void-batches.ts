/** Voids the batches of a failed settlement: the other orders return to the book, and the culprit's orders end. */
import type { Fence } from '../../db/fence.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import type { Culprit } from '../../domain/settlement/void-batch.ts'
import type { Clock } from '../../service/clock.ts'
import type { Logger } from '../../service/logger.ts'
import type { Voids } from './ports.ts'

export interface VoidPorts {
  readonly voids: Voids
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

/** Returns false, and changes nothing, until the indexer has recorded every action before the failure. */
export async function voidFrom(
  { voids, clock, logger }: VoidPorts,
  spec: MarketSpec,
  fence: Fence,
  { queueNo, cause: culprit, reverted }: Failure,
): Promise<boolean> {
  const voided = await voids.voidFrom(spec, fence, { queueNo, culprit, at: clock.now() })
  if (voided === null) return false
  const details = {
    market_id: spec.marketId,
    batch_ids: voided.batchIds,
    tx_hash: reverted?.hash ?? null,
    culprit: culprit.kind,
    error: culprit.error,
  }
  if (voided.isRestricted)
    logger.error(details, 'two settlements in a row reverted without a culprit: market set to cancel-only')
  else logger.error(details, 'settlement failed: batches voided')
  return true
}
