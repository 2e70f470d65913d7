/** Works off a market's queue of actions: signs them in order, several in flight, and ends those that will not be mined. */

import type { Fence } from '../../db/fence.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import { ACTION_AHEAD, ACTION_LIFETIME } from '../../domain/settlement/durations.ts'
import type { Millis } from '../../domain/units.ts'
import { type Clock, elapsed } from '../../service/clock.ts'
import type { KillPointHook } from '../../service/kill-point.ts'
import type { Logger } from '../../service/logger.ts'
import type { Calls, Chain, Fee, Metrics, Signer } from '../ports.ts'
import type { Delivery } from '../relayer/delivery.ts'
import type { IsDead } from '../relayer/key-delivery.ts'
import type { RelayerLane, StoredTransaction } from '../relayer/ports.ts'
import { isOpen, isSameNonce, NOOP_PURPOSE } from '../relayer/stored-transaction.ts'
import type { TransactionSpans } from '../relayer/transaction-spans.ts'
import { endFailed } from './end-failed.ts'
import type { PendingAction, RequeueStore, SettlementStore, Voids } from './ports.ts'

export interface SettlePorts {
  readonly store: SettlementStore
  readonly voids: Voids
  readonly requeues: RequeueStore
  readonly delivery: Delivery
  readonly chain: Chain
  readonly signer: Signer
  readonly calls: Calls
  readonly clock: Clock
  readonly killPoint: KillPointHook<'after-reserving' | 'after-signing'>
  readonly metrics: Metrics
  readonly logger: Logger
  /** Absent or null: no spans. */
  readonly transactionSpans?: TransactionSpans | null
  /** Most actions of one market between signing and receipt. */
  readonly maxInFlight: number
  /** Blocks on top of a revert before it counts as final. */
  readonly confirmations: number
  readonly fee: () => Fee
  /** Block time of the chain's head; null while no node responds. */
  readonly headTime: () => Millis | null
}

/** `idle`: nothing to do until woken. `waiting`: run again soon. */
export type Progress = 'idle' | 'waiting'

/** `dead`: not signed, and too old to be mined. `lost`: its nonce is used by a reverted, an empty or a foreign transaction. */
export type ActionState = 'queued' | 'dead' | 'open' | 'mined' | 'lost'

const INDEXER_LATE_MS = 2000

/** The chain decides: without a node no action is dead, because blocks in between can still have mined it. */
const isOutdated = ({ asOf }: PendingAction, headTime: Millis | null): boolean =>
  headTime !== null && headTime - asOf > ACTION_LIFETIME

export function actionStateOf(
  action: PendingAction,
  transactions: readonly StoredTransaction[],
  headTime: Millis | null,
): ActionState {
  const own = transactions.filter((transaction) => isSameNonce(transaction, action))
  if (own.length === 0) return isOutdated(action, headTime) ? 'dead' : 'queued'
  if (own.some(({ status, purpose }) => status === 'MINED' && purpose !== NOOP_PURPOSE)) return 'mined'
  return own.some(isOpen) ? 'open' : 'lost'
}

/**
 * Makes the lane equal to the chain: its nonces and the market's last action id, which forks and actions of other
 * operators change. The id is read first, so that a fork before that shows in the nonces.
 */
export async function recoverLane(
  { chain, delivery, store, logger }: Pick<SettlePorts, 'chain' | 'delivery' | 'store' | 'logger'>,
  { marketId, trader }: MarketSpec,
  lane: RelayerLane,
  fence: Fence,
): Promise<void> {
  const actionId = await chain.lastActionId(trader)
  await delivery.recover(fence)
  const replaced = await store.adoptActionId(marketId, lane, fence, actionId)
  if (replaced === null) return
  const details = { market_id: marketId, stored: replaced, action_id: actionId }
  logger.error(details, 'last action id differs from the contract; adopted')
}

/** One pass over the market's actions. Safe to repeat: every pass reads the state from the database. */
export async function settleMarket(
  ports: SettlePorts,
  spec: MarketSpec,
  lane: RelayerLane,
  fence: Fence,
): Promise<Progress> {
  const { actions, transactions } = await ports.store.view(spec.marketId, lane)
  const headTime = ports.headTime()
  const states = actions.map((action) => actionStateOf(action, transactions, headTime))
  await recordSubmissions(ports, spec, fence, actions)

  const open = transactions.filter(isOpen)
  const missed = missedByIndexer(ports, actions, states)
  const isRecovered = await ports.delivery.recoverIfDue(fence, open.length > 0 || missed.length > 0)
  if (isRecovered) await refreshMined(ports, transactions, missed)
  const isDead: IsDead = (nonce) =>
    actions.some((action) => isSameNonce(action, nonce) && isOutdated(action, headTime))
  await ports.delivery.check(fence, open, isDead)

  const inFlight = states.filter((state) => state === 'open').length
  reportGauges(ports, lane, states, inFlight)
  const failed = states.findIndex((state) => state === 'lost' || state === 'dead')
  if (failed >= 0) {
    if (inFlight === 0 && (await endFailed(ports, spec, fence, { actions, transactions }, failed)))
      await recoverLane(ports, spec, lane, fence)
    return 'waiting'
  }
  if (!states.includes('queued')) return open.length > 0 ? 'waiting' : 'idle'
  if (!isHandingOver(actions, states, lane))
    await signQueued(ports, spec, lane, fence, ports.maxInFlight - inFlight)
  return 'waiting'
}

/**
 * True while an action signed by a former key waits for the chain or the indexer. The chain orders only transactions of
 * one key, and the contract refuses action ids out of order.
 */
const isHandingOver = (
  actions: readonly PendingAction[],
  states: readonly ActionState[],
  { relayer }: RelayerLane,
): boolean =>
  actions.some(
    (action, at) => action.relayer !== relayer && (states[at] === 'open' || states[at] === 'mined'),
  )

/** The actions with a receipt that the indexer has not recorded: their blocks may have left the chain. */
const missedByIndexer = (
  { clock }: SettlePorts,
  actions: readonly PendingAction[],
  states: readonly ActionState[],
): readonly PendingAction[] =>
  actions.filter(({ asOf }, at) => states[at] === 'mined' && elapsed(clock, asOf) > INDEXER_LATE_MS)

/** A fork can revert a mined transaction, or put a foreign one in its place. The lowest nonces come first; the next pass continues. */
async function refreshMined(
  { delivery, maxInFlight }: SettlePorts,
  transactions: readonly StoredTransaction[],
  missed: readonly PendingAction[],
): Promise<void> {
  const mined = transactions.filter(
    (transaction) =>
      transaction.status === 'MINED' && missed.some((action) => isSameNonce(action, transaction)),
  )
  for (const transaction of mined.slice(0, maxInFlight)) await delivery.refresh(transaction)
}

function reportGauges(
  { metrics }: SettlePorts,
  lane: RelayerLane,
  states: readonly ActionState[],
  inFlight: number,
): void {
  metrics.inFlight(lane.name, inFlight)
  metrics.queued(lane.name, states.filter((state) => state === 'queued').length)
}

/** After a crash between signing and `noteSubmitted`, the journal has no `part_submitted` row yet. */
async function recordSubmissions(
  { store, clock }: SettlePorts,
  { marketId }: MarketSpec,
  fence: Fence,
  actions: readonly PendingAction[],
): Promise<void> {
  for (const { status, relayer, nonce } of actions) {
    if (status === 'SIGNED' && relayer !== null && nonce !== null)
      await store.noteSubmitted(marketId, fence, { relayer, nonce }, clock.now())
  }
}

async function signQueued(
  ports: SettlePorts,
  spec: MarketSpec,
  lane: RelayerLane,
  fence: Fence,
  most: number,
): Promise<number> {
  const { store, signer, calls, clock, metrics, delivery, logger, killPoint, transactionSpans } = ports
  const headTime = ports.headTime()
  if (headTime === null) return 0
  // The next block is not older than the head, so the chain cannot refuse these as too far ahead.
  const latestAsOf = (headTime + ACTION_AHEAD) as Millis
  for (let signed = 0; signed < most; signed++) {
    const fee = ports.fee()
    const startedAt = transactionSpans?.now() ?? 0
    const reserved = await store.reserveNext(spec.marketId, lane, fence, latestAsOf)
    if (reserved === null) return signed
    killPoint('after-reserving')
    const { action, actionId, nonce, asOf } = reserved
    const bytes = await signer.sign(calls.action(spec, action, actionId), nonce, fee)
    const signedAt = clock.now()
    metrics.stage('matched_to_signed', (signedAt - asOf) / 1000)
    const stored = await store.storeSigned(spec.marketId, lane, fence, reserved, { ...bytes, signedAt })
    killPoint('after-signing')
    if (action.kind === 'settle_part') transactionSpans?.signed(action.part, stored, startedAt)
    const batches =
      action.kind === 'settle_part'
        ? { batches: [`${spec.marketId}/${action.part.batchId}/${action.part.part}`] }
        : {}
    const details = { market_id: spec.marketId, kind: action.kind, action_id: actionId, nonce, ...batches }
    logger.debug({ ...details, lane: lane.name, tx_hash: stored.hash }, 'action signed')
    delivery.start(stored)
    await store.noteSubmitted(spec.marketId, fence, { relayer: lane.relayer, nonce }, clock.now())
  }
  return Math.max(0, most)
}
