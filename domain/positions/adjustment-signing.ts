/** Decides when the keeper signs an accepted adjustment, and when it aborts the attempt. Pure. */

import { nextAsOf } from '../auction/as-of.ts'
import { type MarketTerms, reportRulesOf, termsAt } from '../market/in-force.ts'
import type { MarketMode, MarketSpec } from '../market/market.ts'
import { type FundingState, fundingIndexAt } from '../prices/funding-state.ts'
import { isReportUsable, type ReportRules, type UsedReport } from '../prices/report.ts'
import { type SigningKey, signerRefusal } from '../session-keys/session-key.ts'
import { ACTION_LIFETIME } from '../settlement/durations.ts'
import type { OracleReport } from '../settlement/settlement.ts'
import { type Millis, ONE, type Quote, type Seconds } from '../units.ts'
import {
  type AdjustTerms,
  adjustLeverage,
  adjustMargin,
  type LeverageRefusal,
  type MarginRefusal,
  maxRemovable,
} from './adjustment.ts'
import { type Adjustment, holdOf, isLeverage, kindOf } from './adjustment-attempt.ts'
import type { Position } from './position.ts'

/** Time after acceptance at which an unsigned attempt is aborted, so that its account can match again. */
export const PREPARED_LIFETIME = 30_000 as Millis

export type AdjustmentRefusal = MarginRefusal | LeverageRefusal

/** Applies the contract's rules: the resulting position, or the contract's refusal. */
export const adjust = (spec: MarketSpec, position: Position, adjustment: Adjustment, terms: AdjustTerms) =>
  isLeverage(adjustment)
    ? adjustLeverage(spec, position, adjustment, terms)
    : adjustMargin(spec, position, adjustment, terms)

/**
 * Twin of the modes in `ActionLib.ALLOWED`.
 * An addition is possible in every mode except `settled`; every other adjustment only in `open` and `cancel_only`.
 */
export function mayAdjust(mode: MarketMode, adjustment: Adjustment): boolean {
  if (mode === 'open' || mode === 'cancel_only') return true
  return mode !== 'settled' && kindOf(adjustment) === 'add_margin'
}

/** Name of the contract error for this refusal, with its values in wei. */
export function contractError(refusal: AdjustmentRefusal): string {
  switch (refusal.code) {
    case 'NO_POSITION':
      return 'NoPosition'
    case 'NOTHING_MOVES':
      return 'NothingMoves'
    case 'REMOVE_MODE':
      return 'RemoveModeInvalid'
    case 'ABOVE_REMOVABLE':
      return `RemovalTooLarge(maxRemovable ${refusal.maxRemovable}, asked ${refusal.received})`
    case 'BELOW_MINIMUM':
      return `AmountBelowMinimum(minAmount ${refusal.minAmount}, moves ${refusal.moves})`
    case 'ADDITION_INSUFFICIENT':
      return `AdditionInsufficient(needed ${refusal.needed}, given ${refusal.received})`
    case 'LEVERAGE_OUT_OF_RANGE':
      return `LeverageInvalid(maxLeverage ${BigInt(refusal.maxLeverage) * ONE}, leverage ${BigInt(refusal.received) * ONE})`
    case 'MARGIN_IN_ABOVE_MAXIMUM':
      return `MarginInTooLarge(maxMarginIn ${refusal.maxMarginIn}, needed ${refusal.needed})`
    case 'MARGIN_OUT_BELOW_MINIMUM':
      return `MarginOutTooSmall(minMarginOut ${refusal.minMarginOut}, available ${refusal.available})`
    case 'OUT_OF_RANGE':
      return `PositionOutOfRange(${refusal.field})`
  }
}

/** Latest `asOf` before the deadline. The contract rounds `asOf` up to a second. */
export const latestAsOf = (deadline: Seconds): Millis => (deadline * 1000) as Millis

/** True if the signed transaction can only revert. Without a node, no transaction counts as outdated. */
export const isOutdated = (asOf: Millis, headTime: Millis | null): boolean =>
  headTime !== null && headTime - asOf > ACTION_LIFETIME

export interface SigningInput {
  readonly adjustment: Adjustment
  readonly deadline: Seconds
  readonly createdAt: Millis
  /** Database time. */
  readonly now: Millis
  readonly nonce: number
  /** Minimum valid nonce. */
  readonly minimumNonce: bigint
  /** Funds that the chain can debit: free balance and pending withdrawal. */
  readonly funds: Quote
  /**
   * Session key that signed. Null: the account signed, or a fork removed the key and the contract decides.
   */
  readonly sessionKey: SigningKey | null
  /** Block time of the chain's head; null while no node responds. */
  readonly headTime: Millis | null
  /** True if an unsettled fill, a queued market action or another attempt may still change the position. */
  readonly isMoving: boolean
  /** Mined position. */
  readonly position: Position
  readonly spec: MarketSpec
  readonly terms: MarketTerms
  /** Funding after the last queued action. */
  readonly funding: FundingState
  /** The market's newest report; null if it has none. */
  readonly report: OracleReport | null
  readonly usedReport: UsedReport | null
  /** The contract's rules for reports; null until they are fetched. */
  readonly rules: ReportRules | null
}

export type SigningDecision =
  | { readonly kind: 'wait'; readonly for: string }
  | { readonly kind: 'abort'; readonly reason: string }
  | {
      readonly kind: 'sign'
      readonly asOf: Millis
      readonly report: OracleReport
      /** Set for a removal. */
      readonly maxRemovable: Quote | null
    }

const abort = (reason: string): SigningDecision => ({ kind: 'abort', reason })

const unpaid = (funds: Quote, moved: Quote): string =>
  `FreeBalanceInsufficient(available ${funds}, asked ${moved})`

/**
 * Decides whether to sign now. The attempt blocks batches and actions of the account, so its position is final. Only
 * the newest report counts: the operator cannot choose an older price.
 */
export function decideSigning(input: SigningInput): SigningDecision {
  const { adjustment, deadline, createdAt, now, headTime, isMoving, spec, terms, sessionKey } = input
  if (now > latestAsOf(deadline)) return abort('DeadlinePassed')
  const refusal = sessionKey === null ? null : signerRefusal(sessionKey, 'margin', now)
  if (refusal !== null) return abort(refusal.code)
  const { nonce, minimumNonce, funds } = input
  if (BigInt(nonce) < minimumNonce)
    return abort(`MarginNonceBelowMinimum(minimum ${minimumNonce}, nonce ${nonce})`)
  const added = (kindOf(adjustment) === 'add_margin' ? holdOf(adjustment) : 0n) as Quote
  if (added > funds) return abort(unpaid(funds, added))
  const wait = (what: string): SigningDecision =>
    now - createdAt > PREPARED_LIFETIME
      ? abort(`not executed within ${PREPARED_LIFETIME / 1000} s: ${what}`)
      : { kind: 'wait', for: what }
  if (isMoving) return wait('other changes of the position are not settled')
  const asOf = nextAsOf({ now, headTime, lastAsOf: 0 as Millis })
  if (asOf === null) return wait('no node responds')
  const current = termsAt(spec, terms, asOf)
  if (!mayAdjust(current.mode, adjustment)) return abort(`MarketNotOpen(${current.mode})`)
  const { report } = input
  const rules = reportRulesOf(current, input.rules)
  if (report === null || rules === null || !isReportUsable(report, input.usedReport, rules, asOf))
    return wait('the market has no usable oracle report')
  const at = { fundingIndex: fundingIndexAt(input.funding, asOf), oracle: report.price }
  const verdict = adjust(current.spec, input.position, adjustment, at)
  if (!verdict.ok) return abort(contractError(verdict.refusal))
  const { moved } = verdict.value
  if (moved > funds) return abort(unpaid(funds, moved))
  const isRemoval = kindOf(adjustment) === 'remove_margin'
  const most = isRemoval ? maxRemovable(current.spec, input.position, at) : null
  return { kind: 'sign', asOf, report, maxRemovable: most }
}
