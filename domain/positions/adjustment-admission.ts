/** Decides whether the exchange accepts an adjustment. Pure. */
import type { TermsInForce } from '../market/in-force.ts'
import type { FundingIndex, Millis, Price, Quote, Seconds } from '../units.ts'
import { maxOf, ONE } from '../units.ts'
import { accept, refuse, type Verdict } from '../verdict.ts'
import { type Adjustment, holdOf, kindOf, payoutOf } from './adjustment-attempt.ts'
import { type AdjustmentRefusal, adjust, latestAsOf, mayAdjust } from './adjustment-signing.ts'
import { exposureOf, isLiquidatable } from './margin.ts'
import { marginOf, type Position } from './position.ts'

export interface AdjustmentAdmission {
  readonly adjustment: Adjustment
  readonly nonce: number
  readonly deadline: Seconds
  readonly now: Millis
  readonly terms: TermsInForce
  /** As matched: while the attempt is in flight nothing else changes it. */
  readonly position: Position
  /** At `now`. */
  readonly fundingIndex: FundingIndex
  /** Null if the oracle price is too old. */
  readonly oracle: Price | null
  /** Free balance without what is reserved, after the cancels of the attempt. */
  readonly available: Quote
  /** Nonces below it are invalid. */
  readonly minimumNonce: bigint
  readonly isNonceUsed: boolean
  /** A liquidation of the position is running. */
  readonly isLiquidating: boolean
  /** When the account's last signed attempt in the market was aborted; null: within the last minute none was. */
  readonly failedAt: Millis | null
}

export type AdmissionRefusal =
  | AdjustmentRefusal
  | { readonly code: 'DEADLINE_PASSED'; readonly deadline: Seconds }
  | { readonly code: 'NONCE_BELOW_MINIMUM'; readonly minimum: bigint }
  | { readonly code: 'NONCE_USED' }
  | { readonly code: 'MODE'; readonly mode: TermsInForce['mode'] }
  | { readonly code: 'ORACLE_STALE' }
  /** A position in liquidation accepts an addition only. */
  | { readonly code: 'LIQUIDATING' }
  | { readonly code: 'FAILED_RECENTLY'; readonly retryAfter: Seconds }
  | { readonly code: 'INSUFFICIENT_BALANCE'; readonly available: Quote; readonly needed: Quote }

export interface AdmittedAdjustment {
  /** Wei to reserve of the free balance. */
  readonly hold: Quote
  /** The most wei that leaves the market's pool. */
  readonly pays: Quote
}

/**
 * While a position is to be liquidated, an account whose signed attempt was aborted waits this long. An attempt in flight suspends the
 * liquidation, and its owner can make it revert by a transaction of its own, as often as it likes.
 */
export const FAILURE_PAUSE = 60_000 as Millis

/** Room for funding between the acceptance and the execution: a hundredth of the notional. */
const FUNDING_ROOM = 100n

export function admitAdjustment(input: AdjustmentAdmission): Verdict<AdmittedAdjustment, AdmissionRefusal> {
  const { adjustment, nonce, deadline, now, terms, position, fundingIndex, oracle } = input
  if (now > latestAsOf(deadline)) return refuse({ code: 'DEADLINE_PASSED', deadline })
  if (BigInt(nonce) < input.minimumNonce)
    return refuse({ code: 'NONCE_BELOW_MINIMUM', minimum: input.minimumNonce })
  if (input.isNonceUsed) return refuse({ code: 'NONCE_USED' })
  if (!mayAdjust(terms.mode, adjustment)) return refuse({ code: 'MODE', mode: terms.mode })
  if (input.isLiquidating && kindOf(adjustment) !== 'add_margin') return refuse({ code: 'LIQUIDATING' })
  if (oracle === null) return refuse({ code: 'ORACLE_STALE' })
  const mayBeLiquidated = input.isLiquidating || isLiquidatable(terms.spec, position, fundingIndex, oracle)
  const pause = input.failedAt === null ? 0 : input.failedAt + FAILURE_PAUSE - now
  if (mayBeLiquidated && pause > 0)
    return refuse({ code: 'FAILED_RECENTLY', retryAfter: Math.ceil(pause / 1000) as Seconds })
  const verdict = adjust(terms.spec, position, adjustment, { fundingIndex, oracle })
  if (!verdict.ok) return verdict
  const hold = holdOf(adjustment)
  if (hold > input.available)
    return refuse({ code: 'INSUFFICIENT_BALANCE', available: input.available, needed: hold })
  const { notional } = exposureOf(terms.spec, position, fundingIndex, oracle)
  const room = notional / ONE / FUNDING_ROOM
  const most = maxOf(0n, marginOf(position, fundingIndex) + room) as Quote
  return accept({ hold, pays: payoutOf(adjustment, most) })
}
