/** Takes back what a failed settlement leaves behind: whom does the chain name, what goes back to the book, what ends. */

import type { Fence } from '../../db/fence.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import { FLAT } from '../../domain/positions/position.ts'
import { type Culprit, planVoid } from '../../domain/settlement/void-batch.ts'
import type { Quote } from '../../domain/units.ts'
import type { Clock } from '../../service/clock.ts'
import type { Logger } from '../../service/logger.ts'
import type { Chain } from '../ports.ts'
import type { StoredTransaction } from '../relayer/ports.ts'
import type { VoidStore } from './ports.ts'

export interface VoidPorts {
  readonly voids: VoidStore
  readonly chain: Chain
  readonly clock: Clock
  readonly logger: Logger
}

export interface Failure {
  readonly queueNo: number
  /** Null where nothing reached the chain in time. */
  readonly reverted: StoredTransaction | null
}

const LATE: Culprit = { kind: 'late', error: 'not mined in time' }
const NO_FUNDS = { free: 0n as Quote, reserved: 0n as Quote }

/** Does nothing until the indexer has recorded everything before the failure: the mined positions are what is gone back to. */
export async function voidFrom(
  ports: VoidPorts,
  spec: MarketSpec,
  fence: Fence,
  { queueNo, reverted }: Failure,
): Promise<void> {
  const culprit = await culpritOf(ports.chain, reverted)
  const isUnnamed = culprit.kind === 'unnamed'
  const at = ports.clock.now()
  await ports.voids.turn(spec.marketId, fence, queueNo, async (turn) => {
    const { batches, orders, mined, funds, isAfterUnnamed } = turn
    const voiding = planVoid({
      spec,
      at,
      culprit,
      batches,
      orders,
      positions: (account) => mined.get(account) ?? FLAT,
      fundsOf: (account) => funds.get(account) ?? NO_FUNDS,
    })
    const cancelOnly = isUnnamed && isAfterUnnamed
    await turn.save({ ...voiding, error: culprit.error, isUnnamed, cancelOnly })
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
        'two settlements in a row failed and name nobody: the market is cancel-only',
      )
    else ports.logger.error(details, 'a settlement failed: voided')
  })
}

async function culpritOf(chain: Chain, reverted: StoredTransaction | null): Promise<Culprit> {
  if (reverted === null || reverted.block === null) return LATE
  return chain.blame(reverted.raw, reverted.block)
}
