/**
 * The forced order, with which a liquidation closes a position in the book: reduce-only, market type, unsigned.
 */
import type { OrderPlaced } from '../journal/journal-row.ts'
import { type Order, orderIdOf } from '../orders/order.ts'
import type { Address, MarketId, Millis, OrderHash, Seconds, Seq, Steps, Ticks, UserId } from '../units.ts'

export interface ForcedOrderTerms {
  readonly marketId: MarketId
  readonly account: UserId
  readonly maker: Address
  /** Signed position size. */
  readonly size: Steps
  readonly steps: Steps
  /** Sequence of its journal row. It is also the order's number, which replaces the salt. */
  readonly seq: Seq
  readonly at: Millis
}

/** `hashOf`: digest that a trader would sign for an order with these fields; it identifies the order. */
export function forcedOrderRow(
  { marketId, account, maker, size, steps, seq, at }: ForcedOrderTerms,
  hashOf: (order: Order) => OrderHash,
): OrderPlaced {
  const order: Order = {
    ...{ marketId, maker, side: size > 0 ? 'SHORT' : 'LONG', type: 'MARKET', price: 0 as Ticks },
    ...{ quantity: steps, trigger: 0 as Ticks, leverage: 0, reduceOnly: true, expiration: 0 as Seconds },
    salt: BigInt(seq),
  }
  const { side, type, price, quantity, trigger, leverage, expiration } = order
  return {
    ...{ kind: 'order_placed', order_id: orderIdOf(marketId, seq), user_id: account, maker, signer: null },
    ...{ hash: hashOf(order), salt: seq, side, type, price, quantity, trigger, leverage, reduce_only: true },
    ...{ expiration, alive_until: 0, status: 'OPEN', accepted_at: at, openable: 0, reserved: '0' },
    ...{ reserved_price: 0, forced: true },
  }
}
