/** What an order would hold back, and the band it is measured against. */
import Type from 'typebox'
import { amountOf } from '../wire/schema.ts'

export const reservationFields = {
  ...amountOf('opening_quantity', 'What of it may open or grow a position.'),
  ...amountOf('closing_quantity', 'What of it would only shrink the position.'),
  ...amountOf(
    'reserved_price',
    'What margin is computed at; of a limit sell: half of what its fee allowance is.',
  ),
  ...amountOf('margin', 'Margin held back for what opens.'),
  ...amountOf('fee_allowance', 'Held back for the fees of what opens, at the taker rate.'),
  ...amountOf('reserved_margin', 'Both together.'),
}

export const PriceBand = Type.Object(
  {
    ...amountOf('lowest', 'Lowest price of a batch now.'),
    ...amountOf('highest', 'Highest price of a batch now.'),
    ...amountOf('oracle_price', 'What the band lies around.'),
  },
  { description: 'Buys above it and sells below it are refused; on the other side they wait.' },
)
