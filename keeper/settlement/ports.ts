/** Ports of a market's settlement. */
import type { Fence } from '../../db/fence.ts'
import type { ActionKind } from '../../domain/actions/action.ts'
import type { SignableAction } from '../../domain/actions/action-rules.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import type { Culprit } from '../../domain/settlement/void-batch.ts'
import type { MarketId, Millis } from '../../domain/units.ts'
import type { SignedTransaction } from '../ports.ts'
import type { RelayerLane, StoredTransaction } from '../relayer/ports.ts'

/** An action of a market that is not mined yet. */
export interface PendingAction {
  readonly queueNo: number
  readonly kind: ActionKind
  readonly asOf: Millis
  readonly status: 'QUEUED' | 'SIGNED' | 'SUBMITTED'
  /** Reserved before the action is signed, as is `nonce`. A former key of the lane, if the action was numbered before a rotation. */
  readonly relayer: string | null
  readonly nonce: number | null
}

/** The key and the nonce that an action was signed with. */
export interface SentNonce {
  readonly relayer: string
  readonly nonce: number
}

/** A queued action with the numbers to sign it with. */
export interface ReservedAction {
  readonly queueNo: number
  readonly asOf: Millis
  readonly action: SignableAction
  readonly actionId: number
  readonly nonce: number
}

export interface RelayerLaneView {
  /** By queue number. */
  readonly actions: readonly PendingAction[]
  /** Every transaction with a nonce of these actions, and every open one of the lane. */
  readonly transactions: readonly StoredTransaction[]
}

export interface SettlementStore {
  view(marketId: MarketId, lane: RelayerLane): Promise<RelayerLaneView>
  /**
   * Assigns action id and nonce to the next queued action, which keeps them after a crash. Null if none is queued, or
   * if its as-of time is later than `latestAsOf`.
   */
  reserveNext(
    marketId: MarketId,
    lane: RelayerLane,
    fence: Fence,
    latestAsOf: Millis,
  ): Promise<ReservedAction | null>
  /** Stores the signed bytes of a reserved action. Throws if the action has ended meanwhile. */
  storeSigned(
    marketId: MarketId,
    lane: RelayerLane,
    fence: Fence,
    reserved: ReservedAction,
    signed: SignedTransaction & { readonly signedAt: Millis },
  ): Promise<StoredTransaction>
  /**
   * Sets the market's last action id to the contract's, unless an action has an id and is not mined. Returns the stored id that it
   * replaced; null if nothing changed.
   */
  adoptActionId(marketId: MarketId, lane: RelayerLane, fence: Fence, actionId: number): Promise<number | null>
  /** Marks the action as sent; of a part it appends `part_submitted` to the market's journal. Does nothing if it is marked already. */
  noteSubmitted(marketId: MarketId, fence: Fence, sent: SentNonce, at: Millis): Promise<void>
  /** The key of the last mined action before `queueNo`; null if there is none. */
  relayerBefore(marketId: MarketId, queueNo: number): Promise<string | null>
}

/** The action at `queueNo` is the market's first that is neither mined nor ended, and it will not be mined as it was signed. */
export interface QueueRestart {
  readonly queueNo: number
  /** True if the action ends; else it is signed again, too. */
  readonly isDropped: boolean
  readonly error: string
  readonly at: Millis
}

export interface RestartedQueue {
  /** The first queued action if a part behind it cannot settle without the dropped action, else null. */
  readonly unsettleableFrom: number | null
}

export interface RequeueStore {
  /**
   * Drops the action or not, and returns all behind it to the queue, to be signed with new numbers. Returns null and changes nothing until
   * the indexer has recorded every action before it.
   */
  restart(spec: MarketSpec, fence: Fence, restart: QueueRestart): Promise<RestartedQueue | null>
}

/** Batches that a void has ended. */
export interface VoidedBatches {
  readonly batchIds: readonly number[]
  /** It was the second failure in a row without a culprit: the market accepts only cancels. */
  readonly isRestricted: boolean
}

export interface Voids {
  /**
   * Voids every action from `queueNo` on. Returns null, and changes nothing, until the indexer has recorded every action before it: positions are
   * reset to the mined ones.
   */
  voidFrom(
    spec: MarketSpec,
    fence: Fence,
    failure: { readonly queueNo: number; readonly culprit: Culprit; readonly at: Millis },
  ): Promise<VoidedBatches | null>
}
