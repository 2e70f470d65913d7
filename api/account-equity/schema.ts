/** The equity of an account over time. */
import Type, { type Static } from 'typebox'
import { INTERVALS, Interval, intervalRange } from '../wire/intervals.ts'
import {
  amountOf,
  bookmarkQuery,
  closed,
  NextCursor,
  named,
  PositiveInteger,
  pageQuery,
  Time,
  words,
} from '../wire/schema.ts'

export const EquityPoint = named('EquityPoint', {
  start: Time('Start of the interval.'),
  valued_at: Time('Time of the equity: the end of the interval, or now if it has not ended.'),
  ...amountOf('equity', '`balance` plus `unrealized_pnl`.'),
  ...amountOf(
    'balance',
    'Free balance and margins of positions, as `total` of `GET /v0/balance/{user_id}/margin`.',
  ),
  ...amountOf(
    'unrealized_pnl',
    'Profit of open positions at the last mark price before `valued_at`; at the final price of a market that has ended.',
  ),
  ...amountOf('deposits', 'Deposits in the interval.'),
  ...amountOf('withdrawals', 'Withdrawals requested in the interval.'),
  ...amountOf('realized_pnl', 'Profit or loss of what closed positions, without fees and funding.'),
  ...amountOf('fees', 'Fees of fills.'),
  ...amountOf('funding', 'Funding received while it accrued; negative if paid.'),
})
export type EquityPoint = Static<typeof EquityPoint>

export const Equity = named('Equity', {
  interval: Interval,
  equity: Type.Array(EquityPoint, {
    description:
      'Newest first: every interval from the first deposit, withdrawal or position on. A page can have fewer items than `limit`.',
  }),
  next_cursor: NextCursor,
})

export const EquityQuery = closed({
  interval: Type.Optional(
    words(INTERVALS, 'Length of the intervals, in UTC. Default 1d. Hours reach back 730 days.'),
  ),
  market_id: Type.Optional(
    PositiveInteger('Only what this market contributes: its profits, fees and funding, without deposits.'),
  ),
  ...intervalRange,
  ...pageQuery,
  ...bookmarkQuery,
})
