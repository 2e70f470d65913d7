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
  /** Matched position; nothing else changes it while the attempt is in flight. */
  readonly position: Position
  /** Funding index at `now`. */
  readonly fundingIndex: FundingIndex
  /** Null if the oracle price is too old. */
  readonly oracle: Price | null
  /** Free balance less all reservations, after the cancels of the attempt. */
  readonly available: Quote
  /** Minimum valid nonce. */
  readonly minimumNonce: bigint
  readonly isNonceUsed: boolean
  /** True if a liquidation of the position is running. */
  readonly isLiquidating: boolean
  /**
   * Time at which the account's last signed attempt in the market was aborted; null: not within the last minute.
   */
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
  /** Wei to reserve from the free balance. */
  readonly hold: Quote
  /** Maximum wei that leaves the market's pool. */
  readonly pays: Quote
}

/**
 * Pause of an account after an aborted attempt while a liquidation is due. An attempt suspends the liquidation, and the
 * account can make it revert repeatedly with transactions of its own.
 */
export const FAILURE_PAUSE = 60_000 as Millis

/** Divisor of the notional: 1 % is reserved for funding between acceptance and execution. */
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
