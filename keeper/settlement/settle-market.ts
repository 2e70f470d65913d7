/** Settles a market's batches: signs its queued parts in order, several in flight, and sees to those that will not be mined. */

import type { Fence } from '../../db/fence.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import { ACTION_LIFETIME } from '../../domain/settlement/durations.ts'
import type { Millis } from '../../domain/units.ts'
import type { Clock } from '../../service/clock.ts'
import type { KillPointHook } from '../../service/kill-point.ts'
import type { Logger } from '../../service/logger.ts'
import type { Calls, Chain, Fee, Metrics, Signer } from '../ports.ts'
import { type Delivery, NOTHING } from '../relayer/delivery.ts'
import type { RelayerLane, StoredTransaction } from '../relayer/ports.ts'
import type { PendingAction, RelayerLaneView, SettlementStore, VoidStore } from './ports.ts'
import { voidFrom } from './void-batches.ts'

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
  /** Parts of one market between signing and receipt, at most. */
  readonly maxInFlight: number
  /** How many blocks deep a revert must lie before it is believed. */
  readonly confirmations: number
  readonly fee: () => Fee
}

/** `idle`: nothing to do until woken. `waiting`: look again soon. */
export type Progress = 'idle' | 'waiting'

/** What has become of an action. `dead`: never signed, and too old to be. `lost`: its nonce is used, and not for it. */
export type Fate = 'queued' | 'dead' | 'open' | 'mined' | 'lost'

const FORGOTTEN_MS = 2000

export function fateOf(action: PendingAction, transactions: readonly StoredTransaction[], now: Millis): Fate {
  if (action.nonce === null) return now - action.asOf > ACTION_LIFETIME ? 'dead' : 'queued'
  const own = transactions.filter(({ nonce }) => nonce === action.nonce)
  if (own.some(({ status, purpose }) => status === 'MINED' && purpose !== NOTHING)) return 'mined'
  if (own.some(({ status }) => status === 'MINED' || status === 'REVERTED')) return 'lost'
  return 'open'
}

/** One look at the market's lane. Safe to repeat at any time: what was done is read from the database each time. */
export async function settleMarket(
  ports: SettlePorts,
  spec: MarketSpec,
  lane: RelayerLane,
  fence: Fence,
): Promise<Progress> {
  const { actions, transactions } = await ports.store.view(spec.marketId, lane)
  const now = ports.clock.now()
  const fates = actions.map((action) => fateOf(action, transactions, now))
  await tellSubmitted(ports, spec, fence, actions)

  const open = transactions.filter(({ status }) => status === 'SIGNED' || status === 'BROADCAST')
  const isDead = (nonce: number): boolean =>
    actions.some((action) => action.nonce === nonce && now - action.asOf > ACTION_LIFETIME)
  await ports.delivery.check(fence, open, isDead)

  const inFlight = fates.filter((fate) => fate === 'open').length
  report(ports, lane, fates, inFlight)
  const bad = fates.findIndex((fate) => fate === 'lost' || fate === 'dead')
  if (bad >= 0) {
    if (inFlight === 0) await takeBack(ports, spec, fence, { actions, transactions }, bad)
    return 'waiting'
  }
  if (isForgotten(actions, fates, now)) await ports.delivery.recoverNowAndThen()
  const signed = await signQueued(ports, spec, lane, fence, ports.maxInFlight - inFlight)
  return inFlight + signed > 0 ? 'waiting' : 'idle'
}

/** Has a receipt but is not in the indexer's chain: the block that held it may be gone. */
const isForgotten = (actions: readonly PendingAction[], fates: readonly Fate[], now: Millis): boolean =>
  actions.some(({ asOf }, at) => fates[at] === 'mined' && now - asOf > FORGOTTEN_MS)

function report({ metrics }: SettlePorts, lane: RelayerLane, fates: readonly Fate[], inFlight: number): void {
  metrics.inFlight(lane.name, inFlight)
  metrics.queued(lane.name, fates.filter((fate) => fate === 'queued').length)
}

/** After a crash between signing and telling, the market's log has not heard of the part. */
async function tellSubmitted(
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
  for (let signed = 0; signed < most; signed++) {
    const fee = ports.fee()
    const now = ports.clock.now()
    const transaction = await ports.store.signNext(spec.marketId, lane, fence, now, (part, nonce) => {
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

/** Nothing is in flight any more, and the action at `bad` will not be mined: everything from it on is voided. */
async function takeBack(
  ports: SettlePorts,
  spec: MarketSpec,
  fence: Fence,
  { actions, transactions }: RelayerLaneView,
  bad: number,
): Promise<void> {
  const { queueNo, nonce } = actions[bad] as PendingAction
  const reverted = transactions.find(
    (transaction) => transaction.nonce === nonce && transaction.status === 'REVERTED',
  )
  if (reverted !== undefined && !(await isSealed(ports, reverted))) return
  await voidFrom(ports, spec, fence, { queueNo, reverted: reverted ?? null })
}

async function isSealed(
  { chain, confirmations }: SettlePorts,
  { hash }: StoredTransaction,
): Promise<boolean> {
  const receipt = await chain.receipt(hash)
  if (receipt === null || receipt.block === null) return false
  return (await chain.head()).block >= receipt.block + confirmations
}
