/** The reservation of an order, and the price band that applies to it. */
import Type from 'typebox'
import { amountOf } from '../wire/schema.ts'

export const reservationFields = {
  ...amountOf('opening_quantity', 'Part of the quantity that may open or grow a position.'),
  ...amountOf('closing_quantity', 'Part of the quantity that only shrinks the position.'),
  ...amountOf(
    'reserved_price',
    'Price at which the margin is computed; for a limit sell half the price of its fee allowance.',
  ),
  ...amountOf('margin', 'Margin reserved for the opening quantity.'),
  ...amountOf('fee_allowance', 'Reserved for the fees of the opening quantity, at the taker rate.'),
  ...amountOf('reserved_margin', 'Sum of margin and fee allowance.'),
}

export const PriceBand = Type.Object(
  {
    ...amountOf('lowest', 'Lowest price at which a batch can clear now.'),
    ...amountOf('highest', 'Highest price at which a batch can clear now.'),
    ...amountOf('oracle_price', 'Oracle price from which the band is computed.'),
  },
  {
    description:
      'Buys above the band and sells below it are rejected; orders outside it on the other side rest until they are eligible.',
  },
)
