/** Converts resting orders to stored orders and journal rows, for tests of what a batch writes. */
import type { RestingOrder } from '../../../domain/book/book.ts'
import type { OrderPlaced } from '../../../domain/journal/journal-row.ts'
import type { MarketSpec } from '../../../domain/market/market.ts'
import type { OpenOrder } from '../../../domain/orders/open-order.ts'
import { reservationPerStep } from '../../../domain/orders/reservation.ts'
import type { Address, Quote, Seq, Steps, Ticks } from '../../../domain/units.ts'

const MAKER = `0x${'11'.repeat(20)}` as Address

export const orderIdOf = (spec: MarketSpec, seq: number): string => `${spec.marketId}-${seq}`

/** OPEN, without fills, with the reservation of its openable steps. */
export function openOrder(
  spec: MarketSpec,
  order: RestingOrder,
  changes: Partial<OpenOrder> = {},
): OpenOrder {
  const { seq, account, side, type, limit, remaining, leverage, reduceOnly } = order
  const { openable, reservedPrice, expiration, acceptedAt } = order
  const reserved = openable === 0 ? 0n : reservationPerStep(spec, order) * BigInt(openable)
  return {
    ...{ seq, account, side, type, leverage, reduceOnly, openable, reservedPrice, expiration, acceptedAt },
    orderId: orderIdOf(spec, seq),
    maker: MAKER,
    salt: BigInt(seq),
    price: limit,
    trigger: 0 as Ticks,
    timeInForce: order.ioc ? 'ioc' : 'gtc',
    unused: order.unused ?? (0 as Steps),
    aliveUntil: expiration,
    triggered: null,
    reserved: reserved as Quote,
    held: 0n as Quote,
    partialSlot: null,
    forced: order.forced,
    endedAt: null,
    status: 'OPEN',
    statusReason: null,
    quantity: remaining,
    filled: 0 as Steps,
    settling: 0 as Steps,
    closingReason: null,
    closedBy: null,
    ...changes,
  }
}

export const bySeq = (orders: Iterable<OpenOrder>): Map<Seq, OpenOrder> =>
  new Map([...orders].map((order) => [order.seq, order]))

/** The journal row of its placement. */
export const placedRow = (order: OpenOrder): OrderPlaced => ({
  kind: 'order_placed',
  order_id: order.orderId,
  user_id: order.account,
  maker: order.maker,
  signer: order.maker,
  hash: `0x${order.seq.toString(16).padStart(64, '0')}`,
  salt: order.seq,
  side: order.side,
  type: order.type,
  price: order.price,
  quantity: order.quantity,
  trigger: order.trigger,
  leverage: order.leverage,
  reduce_only: order.reduceOnly,
  expiration: order.expiration,
  alive_until: order.aliveUntil,
  status: order.status,
  accepted_at: order.acceptedAt,
  openable: order.openable,
  reserved: order.reserved.toString(),
  reserved_price: order.reservedPrice,
})
