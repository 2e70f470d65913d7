/**
 * What the operator expects of the receipt of its transaction, the events that the receipt contains, and the
 * kinds of mismatches between the two.
 */

import type { Side } from '../orders/order.ts'
import type { FundingUpdated } from '../prices/funding.ts'
import type {
  BackstopInheritanceFailed,
  MarketEnded,
  PositionInherited,
  PositionsDeleveraged,
} from '../risk/risk-replay.ts'
import type { Address, HourlyFunding, Millis, Price } from '../units.ts'
import type { BatchSettled } from './settlement.ts'

/** Every `failure_kind` of the contract with traders. `docs/failure-kinds.md` has a table of them. */
export const FAILURE_KINDS = [
  /** A log of the transaction cannot be decoded. */
  'receipt_decode_exception',
  /** A batch without a BatchSettled event. */
  'no_trade_execution_events',
  /** A batch or a deleveraging whose events do not explain the positions. */
  'trade_events_without_position_updates',
  /** A batch with an order or with terms that this operator did not send. */
  'invalid_batch_trade_participant_coverage',
  /** A batch whose liquidations differ from those that were sent. */
  'invalid_forced_book_liquidation_fill_coverage',
  /** An adjustment without its event. */
  'no_account_adjustment_position_updates',
  /** An inheritance by the backstop with neither a success nor a failure event. */
  'no_liquidation_settlement_events',
  /** An inheritance that failed. */
  'backstop_inheritance_failed_only',
  /** A deleveraging without its event. */
  'no_adl_settlement_events',
  /** A deleveraging that closed no steps. */
  'no_adl_trade_events',
  /** An expected account is missing. */
  'missing_expected_participants',
  /** An expected account is there, with other values than expected. */
  'missing_expected_position_updates',
  /** An inheritance, a deleveraging or an adjustment changed an unexpected account, or this operator did not send it. */
  'invalid_position_update_participant_coverage',
] as const
export type FailureKind = (typeof FAILURE_KINDS)[number]

/** A mismatch of an action that changes no account, so that the contract with traders does not list it. */
export type OperatorFailureKind =
  /** A funding update without its event. */
  | 'no_funding_update_event'
  /** A finalization without its event. */
  | 'no_final_price_event'
  /** A funding update or a finalization with other terms than were sent. */
  | 'unexpected_action_terms'

export interface Mismatch {
  readonly kind: FailureKind | OperatorFailureKind
  readonly reason: string
}

export const mismatch = (kind: Mismatch['kind'], reason: string): Mismatch => ({ kind, reason })

export type MismatchOrNull = Mismatch | null

/** The action was executed and changed nothing: an outcome that its sender expects, not a mismatch that stops the market. */
export const isWithoutEffect = ({ kind }: Mismatch): boolean =>
  kind === 'backstop_inheritance_failed_only' || kind === 'no_adl_trade_events'

// ---------------------------------------------------------------------- events of the receipt

/** A margin or leverage change, from its event. */
export interface AdjustmentEvent {
  readonly account: Address
  readonly nonce: bigint
  /** Positive into the position, negative out of it. */
  readonly amount: bigint
  /** Null if only margin changed. */
  readonly leverage: number | null
}

/** The events of one transaction. */
export interface ReceiptEvents {
  /** Null if the transaction emitted none. */
  readonly settled: BatchSettled | null
  readonly adjusted: readonly AdjustmentEvent[]
  readonly inherited: readonly PositionInherited[]
  readonly inheritanceFailed: readonly BackstopInheritanceFailed[]
  readonly deleveraged: readonly PositionsDeleveraged[]
  readonly fundingUpdated: readonly FundingUpdated[]
  readonly ended: readonly MarketEnded[]
  /** Why a log cannot be decoded; null if all can. */
  readonly undecodable: string | null
  /** True if `domain/` derives the new positions from the events. */
  readonly movesPositions: boolean
}

export const NO_EVENTS: ReceiptEvents = {
  settled: null,
  adjusted: [],
  inherited: [],
  inheritanceFailed: [],
  deleveraged: [],
  fundingUpdated: [],
  ended: [],
  undecodable: null,
  movesPositions: true,
}

// ---------------------------------------------------------------------- expectations

export interface ExpectedFill {
  readonly maker: Address
  /** The order's salt, or the number of a liquidation. */
  readonly salt: bigint
  readonly isForced: boolean
  readonly side: Side
  readonly steps: number
  readonly takerSteps: number
}

/** The part as it was matched and signed. */
export interface PartExpectation {
  readonly kind: 'part'
  readonly batchId: number
  readonly part: number
  readonly parts: number
  readonly price: number
  readonly asOf: number
  readonly actionId: number | null
  readonly fills: readonly ExpectedFill[]
}

export interface AdjustmentExpectation {
  readonly kind: 'adjustment'
  readonly account: Address
  readonly nonce: bigint
  /** Inclusive bounds of the amount; for an exact amount both are equal. */
  readonly lowest: bigint
  readonly highest: bigint
  readonly leverage: number | null
}

export interface InheritanceExpectation {
  readonly kind: 'inheritance'
  readonly actionId: number | null
  readonly account: Address
  readonly backstop: Address
}

export interface DeleveragingExpectation {
  readonly kind: 'deleveraging'
  readonly actionId: number | null
  readonly account: Address
  /** Steps that each counterparty should close. */
  readonly legs: readonly { readonly counterparty: Address; readonly steps: number }[]
}

export interface FundingExpectation {
  readonly kind: 'funding'
  readonly actionId: number | null
  readonly rate: HourlyFunding
  readonly validUntil: Millis
}

export interface FinalPriceExpectation {
  readonly kind: 'final_price'
  readonly actionId: number | null
  readonly price: Price
}

export type Expectation =
  | PartExpectation
  | AdjustmentExpectation
  | InheritanceExpectation
  | DeleveragingExpectation
  | FundingExpectation
  | FinalPriceExpectation
