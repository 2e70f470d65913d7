/**
 * Ends the first action of a market that will not be mined as signed. A part ends its batch and all later actions; a
 * single action is dropped, and later actions are signed again.
 */

import type { Fence } from '../../db/fence.ts'
import { type FailureResponse, responseTo } from '../../domain/actions/action-rules.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import type { Culprit } from '../../domain/settlement/void-batch.ts'
import type { Chain, SignedTransaction } from '../ports.ts'
import type { Delivery } from '../relayer/delivery.ts'
import type { StoredTransaction } from '../relayer/ports.ts'
import { isSameNonce } from '../relayer/stored-transaction.ts'
import type { PendingAction, RelayerLaneView, RequeueStore, SettlementStore } from './ports.ts'
import { type VoidPorts, voidFrom } from './void-batches.ts'

export interface EndPorts extends VoidPorts {
  readonly store: Pick<SettlementStore, 'relayerBefore'>
  readonly requeues: RequeueStore
  readonly delivery: Pick<Delivery, 'refresh'>
  readonly chain: Pick<Chain, 'head' | 'findCulprit'>
  /** Blocks on top of a revert before it counts as final. */
  readonly confirmations: number
}

/** A reverted transaction and the block that reverted it. */
interface Reverted extends SignedTransaction {
  readonly block: number
}

/** `error`: why no transaction of the action was mined. */
type FailureCause = { readonly reverted: Reverted } | { readonly reverted: null; readonly error: string }

const OUT_OF_ORDER = 'ActionOutOfOrder'
/**
 * A fork has rolled back the former key's last action, and the present key's first action was mined before it returned.
 */
const OVERTAKEN: FailureResponse = { does: 'retry', isExpected: true }

/** True if the action before it was signed with another key: the chain did not order both. */
async function isFirstOfKey(
  { store }: EndPorts,
  { marketId }: MarketSpec,
  { queueNo, relayer }: PendingAction,
): Promise<boolean> {
  const before = await store.relayerBefore(marketId, queueNo)
  return before !== null && before !== relayer
}

/** Nothing is in flight, and the action at `failed` is lost or dead. False if nothing is done yet, because its revert is not final. */
export async function endFailed(
  ports: EndPorts,
  spec: MarketSpec,
  fence: Fence,
  { actions, transactions }: RelayerLaneView,
  failed: number,
): Promise<boolean> {
  const action = actions[failed] as PendingAction
  const stored = transactions.find(
    (transaction) => isSameNonce(transaction, action) && transaction.status === 'REVERTED',
  )
  const cause =
    stored === undefined ? missingCause(action, transactions) : await confirmedRevert(ports, stored)
  if (cause === null) return false
  const culprit = await culpritOf(ports.chain, cause)
  const error = cause.reverted === null ? null : errorName(culprit)
  const isOvertaking = error === OUT_OF_ORDER && (await isFirstOfKey(ports, spec, action))
  const { does, isExpected } = isOvertaking ? OVERTAKEN : responseTo(action.kind, error)
  const { kind, queueNo } = action
  if (does === 'void') {
    return voidFrom(ports, spec, fence, { queueNo, cause: culprit, reverted: cause.reverted })
  }
  const restart = { queueNo, isDropped: does === 'drop', error: culprit.error, at: ports.clock.now() }
  const outcome = await ports.requeues.restart(spec, fence, restart)
  if (outcome === null) return false
  const details = {
    market_id: spec.marketId,
    kind,
    queue_no: queueNo,
    tx_hash: cause.reverted?.hash ?? null,
    error: culprit.error,
  }
  const event = does === 'drop' ? 'action dropped' : 'action reverted; will be signed again'
  if (isExpected) ports.logger.warn(details, event)
  else ports.logger.error(details, event)
  if (outcome.unsettleableFrom === null) return true
  // No order and no account is to blame: the parts were matched on what the dropped action would have changed.
  const late = { kind: 'late', error: culprit.error } as const
  return voidFrom(ports, spec, fence, { queueNo: outcome.unsettleableFrom, cause: late, reverted: null })
}

async function culpritOf(chain: EndPorts['chain'], cause: FailureCause): Promise<Culprit> {
  if (cause.reverted === null) return { kind: 'late', error: cause.error }
  return chain.findCulprit(cause.reverted.raw, cause.reverted.block)
}

/** The name of the contract's error; another text if the chain gave none. */
const errorName = ({ error }: Culprit): string => error.split('(')[0] as string

/** Why an action without a receipt will not be mined. */
function missingCause(action: PendingAction, transactions: readonly StoredTransaction[]): FailureCause {
  const own = transactions.filter((transaction) => isSameNonce(transaction, action))
  const isForeign = own.length > 0 && own.every(({ status }) => status === 'REPLACED')
  return { reverted: null, error: isForeign ? 'nonce used by a foreign transaction' : 'not mined in time' }
}

/** The revert with the block that it is in now. Null until that block is final. */
async function confirmedRevert(
  { delivery, chain, confirmations }: EndPorts,
  { raw, hash, ...stored }: StoredTransaction,
): Promise<FailureCause | null> {
  const block = (await delivery.refresh({ raw, hash, ...stored }))?.block ?? null
  if (block === null || (await chain.head()).block < block + confirmations) return null
  return { reverted: { raw, hash, block } }
}
