/** Rows of a market's journal about what its operators, or the exchange itself, have set. */
import type { MarketMode } from '../market/market.ts'
import type { CalendarName } from '../market/trading-calendar.ts'
import type { Wei } from './wei.ts'

/** The exchange's own restriction of the market; the contract's mode is in `terms_changed`. */
export interface MarketRestricted {
  readonly kind: 'market_restricted'
  readonly mode: MarketMode
  /**
   * `reverts`: two settlements in sequence reverted without a culprit. `mismatch`: a receipt differs. `fault`: a command about the market
   * failed in the engine. `restore`: the database was restored from a backup. `operator`: the restriction is lifted.
   */
  readonly why: 'reverts' | 'mismatch' | 'fault' | 'restore' | 'operator'
}

export interface CalendarSet {
  readonly kind: 'calendar_set'
  /** Null: the underlying trades around the clock. */
  readonly calendar: CalendarName | null
}

export interface ImpactNotionalSet {
  readonly kind: 'impact_notional_set'
  /** Null: by the rule. */
  readonly notional: Wei | null
}

/** The mark is held until every order that it triggers has been triggered; null: it moves again. */
export interface MarkHeld {
  readonly kind: 'mark_held'
  readonly mark: Wei | null
}

/** Reservations are computed again at this taker rate. */
export interface ReservedFeeChanged {
  readonly kind: 'reserved_fee_changed'
  readonly fee: Wei
  /** The account up to which that is done; null: for all. */
  readonly after: number | null
}

/**
 * Orders that ended with rows up to `up_to`, and batches and actions that have not changed since, are durable for readers and final on the chain: states
 * no longer have them.
 */
export interface EndedReleased {
  readonly kind: 'ended_released'
  readonly up_to: number
}

export type OperatorRow =
  | MarketRestricted
  | CalendarSet
  | ImpactNotionalSet
  | MarkHeld
  | ReservedFeeChanged
  | EndedReleased
