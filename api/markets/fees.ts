/** The fee rates of a market: what its batches charge now, until when, and the highest that its contract allows. */
import type { Static } from 'typebox'
import { chargedAt, type FeeSchedule, nextFeeChange } from '../../domain/market/fee-periods.ts'
import type { FeeRates } from '../../domain/market/fees.ts'
import type { Millis } from '../../domain/units.ts'
import { amount, maybeTime } from '../wire/amounts.ts'
import { amountOf, named, nullable, Time } from '../wire/schema.ts'

export const Fees = named('Fees', {
  ...amountOf('maker', 'Rate that batches charge now; for binary_future the coefficient.'),
  ...amountOf('taker', 'Rate that batches charge now; for binary_future the coefficient.'),
  ...amountOf('highest_maker', 'Highest rate that the contract allows.'),
  ...amountOf(
    'highest_taker',
    'Highest rate that the contract allows; opening orders reserve their fee at it.',
  ),
  until: nullable(Time('When the rates change as announced; null if no change is announced.')),
  free_until: nullable(Time('The same while both rates are 0; else null.')),
})

export function feesView(highest: FeeRates, schedule: FeeSchedule, now: Millis): Static<typeof Fees> {
  const { makerFee, takerFee } = chargedAt(highest, schedule, now)
  const until = maybeTime(nextFeeChange(highest, schedule, now)?.at ?? null)
  return {
    ...amount('maker', makerFee),
    ...amount('taker', takerFee),
    ...amount('highest_maker', highest.makerFee),
    ...amount('highest_taker', highest.takerFee),
    until,
    free_until: makerFee === 0n && takerFee === 0n ? until : null,
  }
}
