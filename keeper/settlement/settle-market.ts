/** Settles a market's batches: signs queued parts in order, several in flight, and voids parts that will not be mined. */

import type { Fence } from '../../db/fence.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import { ACTION_AHEAD, ACTION_LIFETIME } from '../../domain/settlement/durations.ts'
import type { Millis } from '../../domain/units.ts'
import { type Clock, elapsed } from '../../service/clock.ts'
import type { KillPointHook } from '../../service/kill-point.ts'
import type { Logger } from '../../service/logger.ts'
import type { Calls, Chain, Fee, Metrics, Signer } from '../ports.ts'
import type { Delivery } from '../relayer/delivery.ts'
import type { RelayerLane, StoredTransaction } from '../relayer/ports.ts'
import { isOpen, NOOP_PURPOSE } from '../relayer/stored-transaction.ts'
import type { PendingAction, RelayerLaneView, SettlementStore, VoidStore } from './ports.ts'
import { type FailureCause, voidFrom } from './void-batches.ts'

export interface SettlePorts {
  readonly store: SettlementStore
  readonly voids: VoidStore
  readonly delivery: Delivery
  readonly chain: Chain
  readonly signer: Signer
  readonly calls: Calls
  readonly clock: Clock
  readonly killPoint: KillPointHook<'after-signing'>
  readonly metrics: Metrics
  readonly logger: Logger
  /** Most parts of one market between signing and receipt. */
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
  if (action.nonce === null) return isOutdated(action, headTime) ? 'dead' : 'queued'
  const own = transactions.filter(({ nonce }) => nonce === action.nonce)
  if (own.some(({ status, purpose }) => status === 'MINED' && purpose !== NOOP_PURPOSE)) return 'mined'
  return own.some(isOpen) ? 'open' : 'lost'
}

/**
 * Makes the lane equal to the chain: its nonces, and the market's last action id, which an action of another operator or a fork changes.
 * The id is read first: if a fork took actions back before that, the nonces show it, and the transactions to send again keep the stored id.
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
  const isDead = (nonce: number): boolean =>
    actions.some((action) => action.nonce === nonce && isOutdated(action, headTime))
  await ports.delivery.check(fence, open, isDead)

  const inFlight = states.filter((state) => state === 'open').length
  reportGauges(ports, lane, states, inFlight)
  const failed = states.findIndex((state) => state === 'lost' || state === 'dead')
  if (failed >= 0) {
    if (inFlight === 0) await voidUnsettled(ports, { spec, lane, fence }, { actions, transactions }, failed)
    return 'waiting'
  }
  const signed = await signQueued(ports, spec, lane, fence, ports.maxInFlight - inFlight)
  return open.length + signed > 0 || states.includes('queued') ? 'waiting' : 'idle'
}

/** The nonces of actions with a receipt that the indexer has not recorded: their blocks may have left the chain. */
const missedByIndexer = (
  { clock }: SettlePorts,
  actions: readonly PendingAction[],
  states: readonly ActionState[],
): (number | null)[] =>
  actions
    .filter(({ asOf }, at) => states[at] === 'mined' && elapsed(clock, asOf) > INDEXER_LATE_MS)
    .map(({ nonce }) => nonce)

/** A fork can revert a mined transaction, or put a foreign one in its place. The lowest nonces come first; the next pass continues. */
async function refreshMined(
  { delivery, maxInFlight }: SettlePorts,
  transactions: readonly StoredTransaction[],
  nonces: readonly (number | null)[],
): Promise<void> {
  const mined = transactions.filter(({ nonce, status }) => status === 'MINED' && nonces.includes(nonce))
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
  for (const { status, nonce } of actions) {
    if (status === 'SIGNED' && nonce !== null) await store.noteSubmitted(marketId, fence, nonce, clock.now())
  }
}

async function signQueued(
  ports: SettlePorts,
  spec: MarketSpec,
  lane: RelayerLane,
  fence: Fence,
  most: number,
): Promise<number> {
  const headTime = ports.headTime()
  if (headTime === null) return 0
  // The next block is not older than the head, so the chain cannot refuse these as too far ahead.
  const latestAsOf = (headTime + ACTION_AHEAD) as Millis
  for (let signed = 0; signed < most; signed++) {
    const fee = ports.fee()
    const now = ports.clock.now()
    const times = { now, latestAsOf }
    const transaction = await ports.store.signNext(spec.marketId, lane, fence, times, (part, nonce) => {
      ports.metrics.stage('matched_to_signed', (now - part.asOf) / 1000)
      return ports.signer.sign(ports.calls.settleBatch(spec, part), nonce, fee)
    })
    if (transaction === null) return signed
    ports.killPoint('after-signing')
    ports.delivery.start(transaction)
    await ports.store.noteSubmitted(spec.marketId, fence, transaction.nonce, ports.clock.now())
  }
  return Math.max(0, most)
}

/** Voids everything from the action at `failed` on. Nothing is in flight, and that action will not be mined. */
async function voidUnsettled(
  ports: SettlePorts,
  { spec, lane, fence }: { readonly spec: MarketSpec; readonly lane: RelayerLane; readonly fence: Fence },
  { actions, transactions }: RelayerLaneView,
  failed: number,
): Promise<void> {
  const { queueNo, nonce } = actions[failed] as PendingAction
  const stored = transactions.find(
    (transaction) => transaction.nonce === nonce && transaction.status === 'REVERTED',
  )
  const cause =
    stored === undefined ? missingCause(nonce, transactions) : await confirmedRevert(ports, stored)
  if (cause === null || !(await voidFrom(ports, spec, fence, { queueNo, ...cause }))) return
  await recoverLane(ports, spec, lane, fence)
}

/** Why an action without a receipt will not be mined. */
function missingCause(nonce: number | null, transactions: readonly StoredTransaction[]): FailureCause {
  const own = transactions.filter((transaction) => transaction.nonce === nonce)
  const isForeign = own.length > 0 && own.every(({ status }) => status === 'REPLACED')
  return { reverted: null, error: isForeign ? 'nonce used by a foreign transaction' : 'not mined in time' }
}

/** The revert with the block that it is in now. Null until that block is final. */
async function confirmedRevert(
  { delivery, chain, confirmations }: SettlePorts,
  { raw, hash, ...stored }: StoredTransaction,
): Promise<FailureCause | null> {
  const block = (await delivery.refresh({ raw, hash, ...stored }))?.block ?? null
  if (block === null || (await chain.head()).block < block + confirmations) return null
  return { reverted: { raw, hash, block } }
}
