/** Realized profits of an account over time. */
import Type, { type Static } from 'typebox'
import {
  amountOf,
  bookmarkQuery,
  closed,
  NextCursor,
  named,
  PositiveInteger,
  pageQuery,
  Time,
  timeInput,
  words,
} from '../wire/schema.ts'

const PNL_INTERVALS = ['1h', '1d'] as const

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
  interval: words(PNL_INTERVALS, 'Length of the intervals.'),
  pnl: Type.Array(ProfitPoint, {
    description: 'Newest first, without intervals in which nothing was realized.',
  }),
  next_cursor: NextCursor,
})

export const ProfitsQuery = closed({
  interval: Type.Optional(words(PNL_INTERVALS, 'Length of the intervals, in UTC. Default 1d.')),
  market_id: Type.Optional(PositiveInteger('Only profits in this market.')),
  from: Type.Optional(timeInput('Only intervals that start at this time or later.')),
  to: Type.Optional(timeInput('Only intervals that start before this time. Default: now.')),
  ...pageQuery,
  ...bookmarkQuery,
})
