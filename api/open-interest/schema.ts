/** The open interest of a market over time. */
import Type, { type Static } from 'typebox'
import { INTERVAL_NAMES } from '../candles/schema.ts'
import {
  amountOf,
  bookmarkQuery,
  closed,
  maybeAmountOf,
  NextCursor,
  named,
  pageQuery,
  Time,
  timeInput,
  words,
} from '../wire/schema.ts'

export const OpenInterestPoint = named('OpenInterestPoint', {
  start: Time('Start of the interval.'),
  ...amountOf(
    'open_interest',
    'Sum of the mined long positions at the end of the interval, or now if it is running.',
  ),
  ...maybeAmountOf(
    'open_interest_notional',
    'The same at the last oracle price of the interval, or before it, in USDM; null without a price.',
  ),
})
export type OpenInterestPoint = Static<typeof OpenInterestPoint>

export const OpenInterest = named('OpenInterest', {
  market_id: Type.Integer(),
  symbol: Type.String(),
  interval: words(INTERVAL_NAMES, 'Distance of the points.'),
  open_interest: Type.Array(OpenInterestPoint, { description: 'Newest first, without omissions.' }),
  next_cursor: NextCursor,
})

export const OpenInterestQuery = closed({
  interval: Type.Optional(words(INTERVAL_NAMES, 'Distance of the points, in UTC. Default 1h.')),
  from: Type.Optional(timeInput('Only intervals that start at this time or later.')),
  to: Type.Optional(timeInput('Only intervals that start before this time. Default: now.')),
  ...pageQuery,
  ...bookmarkQuery,
})
