/** Realized profits of an account over time. */
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

export const ProfitPoint = named('ProfitPoint', {
  start: Time('Start of the interval.'),
  ...amountOf('realized_pnl', 'Profit or loss of what closed positions, without fees and funding.'),
  ...amountOf('fees', 'Fees of fills.'),
  ...amountOf(
    'funding',
    'Funding received, negative if paid: that of a position counts when its size changes.',
  ),
  ...amountOf('net_pnl', '`realized_pnl` less `fees` plus `funding`.'),
})
export type ProfitPoint = Static<typeof ProfitPoint>

export const Profits = named('Profits', {
  interval: Interval,
  pnl: Type.Array(ProfitPoint, {
    description: 'Newest first, without intervals in which nothing was realized.',
  }),
  next_cursor: NextCursor,
})

export const ProfitsQuery = closed({
  interval: Type.Optional(words(INTERVALS, 'Length of the intervals, in UTC. Default 1d.')),
  market_id: Type.Optional(PositiveInteger('Only profits in this market.')),
  ...intervalRange,
  ...pageQuery,
  ...bookmarkQuery,
})
