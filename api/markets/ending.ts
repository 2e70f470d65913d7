/** How far a market's life has come, as the answers on markets show it: its close, its final price, its end and its claims. */
import Type from 'typebox'
import { closesAt, reportableUntil } from '../../domain/risk/ending.ts'
import { type EndingColumns, toEnding } from '../../domain/risk/stored-ending.ts'
import { INSOLVENCY_WINDOW, payoutRatio } from '../../domain/risk/wind-down.ts'
import type { Quote } from '../../domain/units.ts'
import { maybeAmount, maybeTime } from '../wire/amounts.ts'
import { maybeAmountOf, maybeWords, nullable, Time } from '../wire/schema.ts'

const NOT_SET = 0

export const endingFields = {
  expires_at: nullable(Time('Time at which the market closes; null for a perpetual.')),
  settling_at: nullable(Time('Scheduled time from which the market is settling; null if none is scheduled.')),
  closes_at: nullable(
    Time('The earlier of the two: placements and batches stop, and open orders end. Null if neither is set.'),
  ),
  dispute_window_ms: Type.Integer({
    description: 'Milliseconds from the first final report in which another one can replace it.',
  }),
  ...maybeAmountOf(
    'final_price',
    'The price at which the market settles, by the report in force; once the market has ended, the price at which it did. Null before.',
  ),
  final_price_at: nullable(Time('Observation time of the final price.')),
  dispute_until: nullable(
    Time('Until then another report can replace the final price; null until there is one.'),
  ),
  ended_at: nullable(Time('Time of the end, from which price and funding are fixed; null before.')),
  ended_by: maybeWords(
    ['finalized', 'frozen'],
    'finalized (at its final price) or frozen; null until the market has ended.',
  ),
  claims_from: nullable(
    Time(
      'Time from which positions are paid out; later if the bank is paused. Null until the market has ended.',
    ),
  ),
  ...maybeAmountOf(
    'payout_ratio',
    'Fraction of their value that positions are paid, below 1 if other accounts had deficits; null until the first payout.',
  ),
}

export function endingView(row: EndingColumns) {
  const ending = toEnding(row)
  const { report } = ending
  const { ended } = row
  const haircut = ended?.haircut ?? null
  return {
    expires_at: maybeTime(row.expires_at === NOT_SET ? null : row.expires_at),
    settling_at: maybeTime(row.settling_at === NOT_SET ? null : row.settling_at),
    closes_at: maybeTime(closesAt(ending)),
    dispute_window_ms: row.dispute_window,
    ...maybeAmount('final_price', ended === null ? (report?.price ?? null) : BigInt(ended.price)),
    final_price_at: maybeTime(ended === null ? (report?.observedAt ?? null) : ended.price_at),
    dispute_until: maybeTime(report === null ? null : reportableUntil(ending)),
    ended_at: maybeTime(ended?.ended_at ?? null),
    ended_by: ended?.how ?? null,
    claims_from: maybeTime(ended === null ? null : ended.ended_at + INSOLVENCY_WINDOW),
    ...maybeAmount(
      'payout_ratio',
      haircut === null
        ? null
        : payoutRatio({ pool: BigInt(haircut.pool) as Quote, owed: BigInt(haircut.owed) as Quote }),
    ),
  }
}
