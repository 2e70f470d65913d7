/** Rows of a market's journal about actions that are not parts of batches. */
import type { SingleKind } from '../actions/action.ts'
import type { TermsEvent } from '../market/changes.ts'
import type { StoredFeePeriod } from '../market/fee-periods.ts'
import type { MarketMode } from '../market/market.ts'
import type { StoredTerms } from '../market/stored-terms.ts'
import type { MatchedPosition } from './batch-rows.ts'
import type { Wei } from './wei.ts'

/** If `rollback` is true, the action's block left the chain, and what the row states is undone. */
interface MinedAction {
  readonly rollback: boolean
  readonly action_id: number
  /** The time as of which the action took effect. */
  readonly as_of?: number
  readonly block: number
  readonly tx_hash: string
  readonly log_index: number
  readonly at: number
}

/** The funding rate changed as of `as_of`, at which the index is `funding_index`. */
export interface FundingUpdatedRow extends MinedAction {
  readonly kind: 'funding_updated'
  readonly as_of: number
  /** Wei per step and hour. */
  readonly rate: Wei
  readonly valid_until: number
  readonly funding_index: Wei
  readonly oracle_price: Wei
  readonly oracle_at: number
}

/** The backstop could not inherit: no position and no balance changed. */
export interface InheritanceFailed extends MinedAction {
  readonly kind: 'inheritance_failed'
  readonly account: string
  readonly reason: string
  /** Wei of notional, or of free balance. */
  readonly needed: Wei
  readonly available: Wei
  readonly funding_index?: Wei
}

/** The market ended at its final price, or was frozen. Its mode is `settled`. */
export interface MarketEndedRow extends MinedAction {
  readonly kind: 'market_ended'
  readonly how: 'frozen' | 'finalized'
  readonly price: Wei
  readonly price_at: number
  readonly funding_index: Wei
  readonly mode_before: MarketMode
  /** Of the bank for this market. */
  readonly pool?: Wei
}

/** Times of a market's close and its dispute window, as on the chain; 0: not set. */
export interface EndingTimes {
  readonly expires_at: number
  readonly settling_at: number
  readonly dispute_window: number
}

/** The expiry or the dispute window was extended, or a close was scheduled or replaced. */
export interface EndingChanged extends EndingTimes {
  readonly kind: 'ending_changed'
  readonly rollback: boolean
  readonly before: EndingTimes
  readonly block: number
  readonly tx_hash: string
  readonly log_index: number
  readonly at: number
}

/** The chain has announced, applied or dropped a change of the market's parameters or mode. */
export interface TermsChanged {
  readonly kind: 'terms_changed'
  readonly rollback: boolean
  readonly cause: TermsEvent['kind']
  /** After it; `before`: null if they were those listed. */
  readonly terms: StoredTerms
  readonly before: StoredTerms | null
  /** The row of the close that the same event has changed. */
  readonly ending: EndingChanged | null
  readonly block: number
  readonly tx_hash: string
  readonly log_index: number
  readonly at: number
}

/** The parameters of the deployment, which the contract's first event states. They are true for as long as the contract exists. */
export interface TermsStated {
  readonly kind: 'terms_stated'
  readonly terms: StoredTerms
}

/** The market's backstop on the chain; null if it has none. */
export interface StoredBackstop {
  readonly backstop: string | null
  /** Highest notional that it may have, in wei. */
  readonly backstop_cap: Wei
}

/** The market has another backstop, or another cap. */
export interface BackstopChanged extends StoredBackstop {
  readonly kind: 'backstop_changed'
  readonly rollback: boolean
  readonly before: StoredBackstop
  readonly block: number
  readonly tx_hash: string
  readonly log_index: number
  readonly at: number
}

/** The operator has changed in which periods the market charges which rates. */
export interface FeesAnnounced {
  readonly kind: 'fees_announced'
  readonly at: number
  readonly fee_periods: readonly StoredFeePeriod[]
}

/** A queued action will not be executed. It has changed nothing; the market's other actions go on. */
export interface ActionDropped {
  readonly kind: 'action_dropped'
  readonly action: SingleKind
  readonly queue_no: number
  readonly reason: string
  readonly at: number
  /** Accounts in queued parts whose matched positions were computed again without the action. */
  readonly rematched: readonly number[]
  /** Their positions. */
  readonly matched?: readonly MatchedPosition[]
  /** The chain has refused it. Without it the action was dropped before it could be mined. */
  readonly is_reverted?: true
}

export type ActionRow =
  | FundingUpdatedRow
  | InheritanceFailed
  | MarketEndedRow
  | EndingChanged
  | TermsChanged
  | TermsStated
  | BackstopChanged
  | FeesAnnounced
  | ActionDropped
