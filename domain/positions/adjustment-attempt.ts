/**
 * Lifecycle of a requested adjustment: its states, its reservation of free balance while in flight, and its
 * expected receipt.
 */
import type { AdjustmentExpectation } from '../settlement/receipt.ts'
import { type Address, abs, minOf, type Quote } from '../units.ts'
import type { LeverageAdjustment, MarginAdjustment } from './adjustment.ts'
import { FOLDED_MARGIN_END } from './position.ts'

export const ADJUSTMENT_KINDS = ['adjust_leverage', 'add_margin', 'remove_margin'] as const
export type AdjustmentKind = (typeof ADJUSTMENT_KINDS)[number]

export const ATTEMPT_STATUSES = [
  ...(['PREPARED', 'SIGNED', 'SUBMITTED', 'COMMITTED', 'ABORTED'] as const),
  'RECEIPT_RECONCILIATION_FAILED',
] as const
export type AttemptStatus = (typeof ATTEMPT_STATUSES)[number]

/** States with an open outcome: the account takes part in no batch and in no single action of the market. */
export const IN_FLIGHT = ['PREPARED', 'SIGNED', 'SUBMITTED'] as const satisfies readonly AttemptStatus[]

export const isInFlight = (status: AttemptStatus): boolean =>
  (IN_FLIGHT as readonly AttemptStatus[]).includes(status)

/** The signed adjustment. */
export type Adjustment = MarginAdjustment | LeverageAdjustment

export const isLeverage = (adjustment: Adjustment): adjustment is LeverageAdjustment =>
  'leverage' in adjustment

export function kindOf(adjustment: Adjustment): AdjustmentKind {
  if (isLeverage(adjustment)) return 'adjust_leverage'
  return adjustment.amount > 0n ? 'add_margin' : 'remove_margin'
}

/** Largest debit of the free balance. It is reserved while the attempt is in flight. */
export function holdOf(adjustment: Adjustment): Quote {
  if (isLeverage(adjustment)) return adjustment.maxMarginIn
  return (adjustment.amount > 0n ? adjustment.amount : 0n) as Quote
}

/**
 * Largest amount that the adjustment takes out of the market's pool. `most`: largest possible position margin
 * at execution.
 */
export function payoutOf(adjustment: Adjustment, most: Quote): Quote {
  if (isLeverage(adjustment)) return most
  return (adjustment.amount >= 0n ? 0n : minOf(-adjustment.amount, most)) as Quote
}

/** Expected receipt. Positive amounts move into the position. */
export function expectationOf(
  adjustment: Adjustment,
  account: Address,
  nonce: bigint,
): AdjustmentExpectation {
  const common = { kind: 'adjustment', account, nonce } as const
  if (isLeverage(adjustment)) {
    const { leverage, maxMarginIn, minMarginOut } = adjustment
    return {
      ...{ ...common, leverage, lowest: -FOLDED_MARGIN_END },
      highest: minMarginOut > 0n ? -minOf(minMarginOut, FOLDED_MARGIN_END as Quote) : maxMarginIn,
    }
  }
  const { amount, removeMode, minAmount } = adjustment
  if (removeMode === 'exact') return { ...common, leverage: null, lowest: amount, highest: amount }
  const least = minAmount > 0n ? minAmount : 1n
  return { ...common, leverage: null, lowest: amount, highest: -minOf(least, abs(amount)) }
}
