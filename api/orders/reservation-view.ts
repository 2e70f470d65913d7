/** Converts a reservation and a price band to their JSON forms. */
import type { Band } from '../../domain/market/band.ts'
import { feeAllowancePerStep, feeAllowancePrice } from '../../domain/market/fees.ts'
import { type MarketSpec, priceOf, quantityOf } from '../../domain/market/market.ts'
import type { Order } from '../../domain/orders/order.ts'
import { marginPriceOf } from '../../domain/orders/reservation.ts'
import type { Price, Quote, Steps, Ticks } from '../../domain/units.ts'
import { amount } from '../wire/amounts.ts'

/** The reservation that acceptance fixes for an order of that quantity. */
export interface Reservation extends Pick<Order, 'side' | 'price' | 'quantity'> {
  readonly openable: Steps
  readonly reserved: Quote
  readonly reservedPrice: Ticks
}

export function reservationView(
  spec: MarketSpec,
  { side, price, quantity, openable, reserved, reservedPrice }: Reservation,
) {
  const fee = feeAllowancePerStep(spec, reservedPrice) * BigInt(openable)
  return {
    ...amount('opening_quantity', quantityOf(spec, openable)),
    ...amount('closing_quantity', quantityOf(spec, (quantity - openable) as Steps)),
    ...amount('reserved_price', priceOf(spec, marginPriceOf({ side, limit: price, reservedPrice }))),
    ...amount('margin', reserved - fee),
    ...amount('fee_allowance', fee),
    ...amount('fee_allowance_price', feeAllowancePrice(spec, reservedPrice)),
    ...amount('reserved_margin', reserved),
  }
}

export const bandView = (spec: MarketSpec, { lo, hi }: Band, oracle: Price) => ({
  ...amount('lowest', priceOf(spec, lo)),
  ...amount('highest', priceOf(spec, hi)),
  ...amount('oracle_price', oracle),
})
