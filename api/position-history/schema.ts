/** Closed positions of an account. */
import Type, { type Static } from 'typebox'
import {
  amountOf,
  bookmarkQuery,
  closed,
  NextCursor,
  named,
  PositiveInteger,
  pageQuery,
  rangeQuery,
  Side,
  Time,
  words,
} from '../wire/schema.ts'

export const POSITION_ENDINGS = ['trade', 'liquidation', 'deleveraging', 'inheritance', 'settlement'] as const

export const ClosedPosition = named('ClosedPosition', {
  position_id: Type.String({ description: 'Unique among the positions of the account.' }),
  market_id: Type.Integer(),
  symbol: Type.String(),
  side: Side,
  ...amountOf('largest_size', 'The largest size that the position had after a mined event.'),
  ...amountOf('opened_quantity', 'Quantity of all that opened or grew it; as much has closed it.'),
  ...amountOf('average_entry_price', 'Average price of what opened it, rounded down at 18 decimals.'),
  ...amountOf(
    'average_exit_price',
    'Average price of what closed it, rounded down at 18 decimals. Where the position was taken over, the price at which its margin was lost.',
  ),
  ...amountOf('realized_pnl', 'Profit or loss without fees and funding.'),
  ...amountOf('fees', 'Fees of its fills. Of a fill that turned a position, the share of the steps.'),
  ...amountOf('funding', 'Funding received; negative if it paid.'),
  ending: words(
    POSITION_ENDINGS,
    'trade: by an order of the account. liquidation: by a forced order. inheritance: the backstop took it over. deleveraging: closed against ' +
      'another account. settlement: by the end of the market.',
  ),
  opened_at: Time('Time of the event that opened it.'),
  closed_at: Time('Time of the event that closed it.'),
})
export type ClosedPosition = Static<typeof ClosedPosition>

export const PositionHistory = named('PositionHistory', {
  positions: Type.Array(ClosedPosition),
  next_cursor: NextCursor,
})

export const PositionHistoryQuery = closed({
  market_id: Type.Optional(PositiveInteger('Only positions in this market.')),
  ...rangeQuery('positions closed'),
  ...pageQuery,
  ...bookmarkQuery,
})
