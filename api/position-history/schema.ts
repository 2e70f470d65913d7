/** Positions of an account from their opening on. */
import Type, { type Static } from 'typebox'
import {
  amountOf,
  bookmarkQuery,
  closed,
  maybeWords,
  NextCursor,
  named,
  nullable,
  PositiveInteger,
  pageQuery,
  rangeQuery,
  Side,
  Time,
  words,
} from '../wire/schema.ts'

export const POSITION_ENDINGS = ['trade', 'liquidation', 'deleveraging', 'inheritance', 'settlement'] as const

export const RecordedPosition = named('RecordedPosition', {
  position_id: Type.String({ description: 'Unique among the positions of the account.' }),
  market_id: Type.Integer(),
  symbol: Type.String(),
  side: Side,
  ...amountOf('largest_size', 'The largest size that the position had after a mined event.'),
  ...amountOf('opened_quantity', 'Quantity of all that opened or grew it; in the end as much has closed it.'),
  ...amountOf('average_entry_price', 'Average price of what opened it, rounded down at 18 decimals.'),
  ...amountOf(
    'average_exit_price',
    'Average price of what closed it, rounded down at 18 decimals; 0 before anything did. Where the position was taken over, the price at which its margin was lost.',
  ),
  ...amountOf('realized_pnl', 'Profit or loss without fees and funding.'),
  ...amountOf('fees', 'Fees of its fills. Of a fill that turned a position, the share of the steps.'),
  ...amountOf(
    'funding',
    'Funding received; negative if it paid. Of an open position, up to the last change of its size.',
  ),
  ending: maybeWords(
    POSITION_ENDINGS,
    'Null while it is open. trade: by an order of the account. liquidation: by a forced order. inheritance: the backstop took it over. deleveraging: closed against ' +
      'another account. settlement: by the end of the market.',
  ),
  opened_at: Time('Time of the event that opened it.'),
  closed_at: nullable(Time('Time of the event that closed it; null while it is open.')),
})
export type RecordedPosition = Static<typeof RecordedPosition>

export const PositionHistory = named('PositionHistory', {
  positions: Type.Array(RecordedPosition),
  next_cursor: NextCursor,
})

export const PositionHistoryQuery = closed({
  status: Type.Optional(
    words(
      ['closed', 'open'],
      'closed (default): the last closed first. open: all of them by market, on one page.',
    ),
  ),
  market_id: Type.Optional(PositiveInteger('Only positions in this market.')),
  ...rangeQuery('positions closed'),
  ...pageQuery,
  ...bookmarkQuery,
})
