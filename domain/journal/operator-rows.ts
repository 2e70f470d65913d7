/** Market journal rows about settings by operators or by the exchange itself. */
import type { MarketMode } from '../market/market.ts'
import type { CalendarName } from '../market/trading-calendar.ts'
import type { Wei } from './wei.ts'

/** The exchange's own restriction of the market. `terms_changed` states the contract's mode. */
export interface MarketRestricted {
  readonly kind: 'market_restricted'
  readonly mode: MarketMode
  /**
   * `reverts`: two successive settlements reverted without a culprit. `mismatch`: a receipt differs. `fault`: a command
   * about the market failed in the engine. `restore`: the database is a restored backup.
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
  /** Null: the default impact notional applies. */
  readonly notional: Wei | null
}

/** The mark is held until every order that it triggers has been triggered; null: released. */
export interface MarkHeld {
  readonly kind: 'mark_held'
  readonly mark: Wei | null
}

/** Reservations are recomputed at this taker rate. */
export interface ReservedFeeChanged {
  readonly kind: 'reserved_fee_changed'
  readonly fee: Wei
  /** Last recomputed account; null: all accounts are done. */
  readonly after: number | null
}

/**
 * States have dropped orders that ended with rows up to `up_to`, and batches and actions unchanged since.
 * They are durable for readers and final on chain.
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
