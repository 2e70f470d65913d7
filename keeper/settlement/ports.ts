/** What the settlement of a market reads and writes. */
import type { Fence } from '../../db/fence.ts'
import type { OpenOrder } from '../../domain/orders/open-order.ts'
import type { OrderPlan } from '../../domain/orders/order-changes.ts'
import type { Funds } from '../../domain/orders/recompute-reservations.ts'
import type { Position } from '../../domain/positions/position.ts'
import type { PartTerms } from '../../domain/settlement/refused-credit.ts'
import type { SettlementPart } from '../../domain/settlement/settlement.ts'
import type { VoidedBatch } from '../../domain/settlement/void-batch.ts'
import type { MarketId, Millis, UserId } from '../../domain/units.ts'
import type { SignedTransaction } from '../ports.ts'
import type { RelayerLane, StoredTransaction } from '../relayer/ports.ts'

/** An action of a market that is not mined yet. */
export interface PendingAction {
  readonly queueNo: number
  readonly batchId: number
  readonly part: number
  readonly asOf: Millis
  readonly status: 'QUEUED' | 'SIGNED' | 'SUBMITTED'
  readonly nonce: number | null
}

export interface RelayerLaneView {
  /** By queue number. */
  readonly actions: readonly PendingAction[]
  /** Every transaction with a nonce of these actions, and every open one of the lane. */
  readonly transactions: readonly StoredTransaction[]
}

/** Signs the part once its numbers are assigned. Synchronous: it runs inside the transaction that assigns them. */
export type SignPart = (part: SettlementPart, nonce: number) => SignedTransaction

export interface SigningTimes {
  readonly now: Millis
  readonly latestAsOf: Millis
}

export interface SettlementStore {
  view(marketId: MarketId, lane: RelayerLane): Promise<RelayerLaneView>
  /**
   * Assigns action number and nonce to the next queued action, signs and stores it in one transaction. Null if none is queued, or if it
   * is as of a later time than `latestAsOf`.
   */
  signNext(
    marketId: MarketId,
    lane: RelayerLane,
    fence: Fence,
    times: SigningTimes,
    sign: SignPart,
  ): Promise<StoredTransaction | null>
  /**
   * Sets the market's last action id to the contract's, unless an action is in flight. Returns the stored id that it replaced; null if
   * nothing changed.
   */
  adoptActionId(marketId: MarketId, lane: RelayerLane, fence: Fence, actionId: number): Promise<number | null>
  /** Appends `part_submitted` to the market's journal. Does nothing if the row exists. */
  noteSubmitted(marketId: MarketId, fence: Fence, nonce: number, at: Millis): Promise<void>
}

/** A market inside a transaction that holds its shard's lock, a valid lease and its accounts' locks. */
export interface VoidTransaction {
  readonly batches: readonly VoidedBatch[]
  /** Of the first batch. */
  readonly terms: PartTerms
  readonly orders: readonly OpenOrder[]
  readonly mined: ReadonlyMap<UserId, Position>
  readonly funds: ReadonlyMap<UserId, Funds>
  /** True if the last mined action before these also reverted without a culprit. */
  readonly isAfterUnnamed: boolean
  /** True if the indexer has recorded everything up to the block. */
  hasIndexed(block: number): Promise<boolean>
  save(voiding: Voided): Promise<void>
}

export interface Voided extends OrderPlan {
  readonly error: string
  readonly isUnnamed: boolean
  /** Stops placements and batches. */
  readonly cancelOnly: boolean
}

export interface VoidStore {
  /** Returns false without running `work` until the indexer has recorded every action before `fromQueueNo`. */
  transaction(
    marketId: MarketId,
    fence: Fence,
    fromQueueNo: number,
    work: (transaction: VoidTransaction) => Promise<void>,
  ): Promise<boolean>
  /** Queues every action from `fromQueueNo` on again, without number and nonce. The same condition. `error`: of the first one's revert. */
  requeue(marketId: MarketId, fence: Fence, fromQueueNo: number, error: string): Promise<boolean>
}
