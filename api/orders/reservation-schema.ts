/** The reservation of an order, and the price band that applies to it. */
import { amountOf, named } from '../wire/schema.ts'

export const reservationFields = {
  ...amountOf('opening_quantity', 'Part of the quantity that may open or grow a position.'),
  ...amountOf('closing_quantity', 'Part of the quantity that only shrinks the position.'),
  ...amountOf('reserved_price', 'Price at which the margin is computed.'),
  ...amountOf('margin', 'Margin reserved for the opening quantity.'),
  ...amountOf('fee_allowance', 'Reserved for the fees of the opening quantity, at the taker rate.'),
  ...amountOf(
    'fee_allowance_price',
    'Price at which the fee allowance is computed: the highest at which every opening step is covered. For a limit sell of a perpetual or ' +
      'future the upper edge of the price band around its limit, or around the upper edge of the band at acceptance if that is higher; for a ' +
      'binary market 0.50, where the fee is largest; for other orders `reserved_price`.',
  ),
  ...amountOf('reserved_margin', 'Sum of margin and fee allowance.'),
}

export const PriceBand = named(
  'PriceBand',
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
