/**
 * Expected content of a transaction receipt, the events that the receipt contains, and the kinds of
 * mismatches.
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

/** Every `failure_kind` of the contract with traders. `docs/operate/observe.md` has the remedies. */
export const FAILURE_KINDS = [
  /** A log of the transaction cannot be decoded. */
  'receipt_decode_exception',
  /** A batch emitted no BatchSettled event. */
  'no_trade_execution_events',
  /** The events of a batch or a deleveraging do not explain the resulting positions. */
  'trade_events_without_position_updates',
  /** A batch contains an order or terms that this operator did not send. */
  'invalid_batch_trade_participant_coverage',
  /** The liquidations of a batch differ from the sent liquidations. */
  'invalid_forced_book_liquidation_fill_coverage',
  /** An adjustment emitted no event. */
  'no_account_adjustment_position_updates',
  /** An inheritance emitted neither a success event nor a failure event. */
  'no_liquidation_settlement_events',
  /** An inheritance failed. */
  'backstop_inheritance_failed_only',
  /** A deleveraging emitted no event. */
  'no_adl_settlement_events',
  /** A deleveraging closed no steps. */
  'no_adl_trade_events',
  /** An expected account is missing. */
  'missing_expected_participants',
  /** An expected account is present with unexpected values. */
  'missing_expected_position_updates',
  /**
   * An inheritance, deleveraging or adjustment changed an unexpected account, or this operator did not send
   * it.
   */
  'invalid_position_update_participant_coverage',
] as const
export type FailureKind = (typeof FAILURE_KINDS)[number]

/** Mismatches of actions that change no account; the contract with traders therefore does not list them. */
export type OperatorFailureKind =
  /** A funding update emitted no event. */
  | 'no_funding_update_event'
  /** A finalization emitted no event. */
  | 'no_final_price_event'
  /** The terms of a funding update or a finalization differ from the sent terms. */
  | 'unexpected_action_terms'

export interface Mismatch {
  readonly kind: FailureKind | OperatorFailureKind
  readonly reason: string
}

export const mismatch = (kind: Mismatch['kind'], reason: string): Mismatch => ({ kind, reason })

export type MismatchOrNull = Mismatch | null

/**
 * Whether the action was executed without any change. Its sender expects this outcome; it is not a mismatch
 * that stops the market.
 */
export const isWithoutEffect = ({ kind }: Mismatch): boolean =>
  kind === 'backstop_inheritance_failed_only' || kind === 'no_adl_trade_events'

// ---------------------------------------------------------------------- events of the receipt

/** Margin or leverage change, decoded from its event. */
export interface AdjustmentEvent {
  readonly account: Address
  readonly nonce: bigint
  /** Positive: into the position; negative: out of it. */
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
  /** Reason why a log cannot be decoded; null if every log can. */
  readonly undecodable: string | null
  /** True if `domain/` derives new positions from the events. */
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

/** The part as matched and signed. */
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
  /** Inclusive bounds of the amount; equal for an exact amount. */
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
  /** Expected closing steps per counterparty. */
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
