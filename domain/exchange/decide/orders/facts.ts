/** Converts orders to the form of answers. */
import { orderIdOf } from '../../../orders/order.ts'
import type { ExchangeState } from '../../state.ts'
import type { OrderRow } from '../../tables/orders.ts'
import type { OrderFacts, StandingOrder } from './command.ts'

export function factsOf(state: ExchangeState, order: OrderRow): OrderFacts {
  const { marketId, accepted } = order
  return {
    order,
    signature: state.signatures.need(marketId, accepted),
    note: state.orderNotes.get(orderIdOf(marketId, accepted)) ?? null,
  }
}

export const referenceOf = (
  state: ExchangeState,
  { marketId, accepted }: OrderRow,
): Extract<StandingOrder, { readonly orderId: string }> => ({
  orderId: orderIdOf(marketId, accepted),
  hash: state.signatures.need(marketId, accepted).hash,
})
