/** Voids the batches of a failed settlement: finds the culprit, returns the other orders to the book, ends the culprit's orders. */

import type { Fence } from '../../db/fence.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import { FLAT } from '../../domain/positions/position.ts'
import { refusedCredit } from '../../domain/settlement/refused-credit.ts'
import { type Culprit, planVoid } from '../../domain/settlement/void-batch.ts'
import type { Quote, Steps } from '../../domain/units.ts'
import type { Clock } from '../../service/clock.ts'
import type { Logger } from '../../service/logger.ts'
import type { VoidStore, VoidTransaction } from './ports.ts'

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
  { queueNo, cause, reverted }: Failure,
): Promise<boolean> {
  const at = ports.clock.now()
  let isVoided = false
  await ports.voids.transaction(spec.marketId, fence, queueNo, async (transaction) => {
    // A deposit that the indexer has not recorded is missing in the balances.
    if (cause.kind === 'credit' && reverted !== null && !(await transaction.hasIndexed(reverted.block)))
      return
    const culprit = cause.kind === 'credit' ? creditCulprit(spec, transaction, cause.error) : cause
    const isUnnamed = culprit.kind === 'unnamed'
    const { batches, orders, mined, funds, isAfterUnnamed } = transaction
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

/** The account whose credit the bank refused in the first part; unnamed if no credit explains the error. */
function creditCulprit(
  spec: MarketSpec,
  { batches, terms, orders, mined, funds }: VoidTransaction,
  error: string,
): Culprit {
  const byId = new Map(orders.map((order) => [order.orderId, order]))
  const [first] = batches
  const fills = (first?.fills ?? []).flatMap(({ order_id, part, steps, taker_steps }) => {
    const order = byId.get(order_id)
    if (order === undefined || part !== first?.fromPart) return []
    const { account, side, price, leverage } = order
    return [
      { account, side, limit: price, leverage, steps: steps as Steps, takerSteps: taker_steps as Steps },
    ]
  })
  const account = refusedCredit({
    ...{ spec, terms, fills },
    positions: (account) => mined.get(account) ?? FLAT,
    freeOf: (account) => (funds.get(account) ?? NO_FUNDS).free,
  })
  const maker = orders.find((order) => order.account === account)?.maker
  return maker === undefined ? { kind: 'unnamed', error } : { kind: 'account', maker, error }
}
