/** Market journal rows about actions outside batches. */
import type { SingleKind } from '../actions/action.ts'
import type { TermsEvent } from '../market/changes.ts'
import type { StoredFeePeriod } from '../market/fee-periods.ts'
import type { MarketMode } from '../market/market.ts'
import type { StoredTerms } from '../market/stored-terms.ts'
import type { MatchedPosition } from './batch-rows.ts'
import type { Wei } from './wei.ts'

/** `rollback`: the action's block left the chain, and every change stated by the row is undone. */
interface MinedAction {
  readonly rollback: boolean
  readonly action_id: number
  /** `asOf` of the action. */
  readonly as_of?: number
  readonly block: number
  readonly tx_hash: string
  readonly log_index: number
  readonly at: number
}

/** The funding rate changed at `as_of`, when the index was `funding_index`. */
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

/** The backstop could not inherit; no position and no balance changed. */
export interface InheritanceFailed extends MinedAction {
  readonly kind: 'inheritance_failed'
  readonly account: string
  readonly reason: string
  /** Wei of notional, or wei of free balance. */
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
  /** Pool of this market at the bank. */
  readonly pool?: Wei
}

/** On-chain times of a market's close and its dispute window; 0: not set. */
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

/** The chain announced, applied or dropped a change of the market's parameters or mode. */
export interface TermsChanged {
  readonly kind: 'terms_changed'
  readonly rollback: boolean
  readonly cause: TermsEvent['kind']
  /** Terms after the change. `before` is null if the listed terms applied. */
  readonly terms: StoredTerms
  readonly before: StoredTerms | null
  /** Change of the close by the same event. */
  readonly ending: EndingChanged | null
  readonly block: number
  readonly tx_hash: string
  readonly log_index: number
  readonly at: number
}

/** Parameters of the deployment, stated by the contract's first event. They never change. */
export interface TermsStated {
  readonly kind: 'terms_stated'
  readonly terms: StoredTerms
}

/** The market's backstop on chain; null if it has none. */
export interface StoredBackstop {
  readonly backstop: string | null
  /** Highest notional of the backstop's position, in wei. */
  readonly backstop_cap: Wei
}

/** The market has a new backstop or a new cap. */
export interface BackstopChanged extends StoredBackstop {
  readonly kind: 'backstop_changed'
  readonly rollback: boolean
  readonly before: StoredBackstop
  readonly block: number
  readonly tx_hash: string
  readonly log_index: number
  readonly at: number
}

/** The operator changed the fee periods of the market. */
export interface FeesAnnounced {
  readonly kind: 'fees_announced'
  readonly at: number
  readonly fee_periods: readonly StoredFeePeriod[]
}

/** A queued action will not be executed. It has changed nothing; the market's other actions continue. */
export interface ActionDropped {
  readonly kind: 'action_dropped'
  readonly action: SingleKind
  readonly queue_no: number
  readonly reason: string
  readonly at: number
  /** Accounts in queued parts with matched positions that were recomputed without the action. */
  readonly rematched: readonly number[]
  /** Recomputed positions of these accounts. */
  readonly matched?: readonly MatchedPosition[]
  /** The chain reverted the action. If absent, the action was dropped before it could be mined. */
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
