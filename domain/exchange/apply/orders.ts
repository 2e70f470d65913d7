/** Applies order rows: acceptance, trigger, change of reservation, and end. */
import type { SettledOrder } from '../../journal/batch-rows.ts'
import {
  evidenceOf,
  type OrderEnded,
  type OrderEnding,
  type OrderPlaced,
  type OrderTriggered,
  type ReservationChanged,
} from '../../journal/journal-row.ts'
import type { LiquidationChanged } from '../../journal/liquidation-row.ts'
import { acceptedSeq, orderIdOf } from '../../orders/order.ts'
import { type ClosingReason, isTerminal } from '../../orders/order-state.ts'
import type {
  Address,
  MarketId,
  Millis,
  OrderHash,
  Quote,
  Seconds,
  Seq,
  Steps,
  Ticks,
  UserId,
} from '../../units.ts'
import { hashOfLabel } from '../order-index.ts'
import type { ExchangeState } from '../state.ts'
import type { OrderNote, OrderRow, SignatureRow } from '../tables/orders.ts'
import { addFunds, changeNote, findOrder, needOrder, type Place } from './change.ts'

export function placeOrder(state: ExchangeState, { marketId }: Place, row: OrderPlaced): void {
  state.orders.put(acceptedOrder(marketId, row))
  state.signatures.put(acceptedSignature(marketId, row))
  addFunds(state, row.user_id, { reserved: BigInt(row.reserved) })
}

/** Order row of an `order_placed` journal row. */
export function acceptedOrder(marketId: MarketId, row: OrderPlaced): OrderRow {
  const accepted = acceptedSeq(row.order_id)
  return {
    marketId,
    accepted,
    seq: accepted,
    account: row.user_id as UserId,
    side: row.side,
    type: row.type,
    price: row.price as Ticks,
    quantity: row.quantity as Steps,
    unused: (row.unused ?? 0) as Steps,
    trigger: row.trigger as Ticks,
    leverage: row.leverage,
    reduceOnly: row.reduce_only,
    timeInForce: row.time_in_force ?? 'gtc',
    postOnly: row.post_only ?? false,
    bracket: row.bracket ?? 0,
    dormant: row.dormant ?? false,
    replaces: row.replaces === undefined ? (0 as Seq) : acceptedSeq(row.replaces),
    forced: row.forced ?? false,
    expiration: row.expiration as Seconds,
    aliveUntil: row.alive_until as Seconds,
    acceptedAt: row.accepted_at as Millis,
    salt: row.salt,
    labelHash: hashOfLabel(row.client_order_id ?? null),
    status: row.status,
    statusReason: null,
    closingReason: null,
    filled: 0 as Steps,
    filledValue: 0n,
    fee: 0n as Quote,
    settling: 0 as Steps,
    openable: row.openable as Steps,
    reservedPrice: row.reserved_price as Ticks,
    reserved: BigInt(row.reserved) as Quote,
    held: 0n as Quote,
    partialSlot: null,
    triggeredAt: null,
    widenings: 0,
    endedAt: null,
    endedSeq: 0 as Seq,
  }
}

export const acceptedSignature = (marketId: MarketId, row: OrderPlaced): SignatureRow => ({
  marketId,
  accepted: acceptedSeq(row.order_id),
  hash: row.hash as OrderHash,
  signer: row.signer as Address | null,
  signature: (row.signature ?? null) as `0x${string}` | null,
  clientOrderId: row.client_order_id ?? null,
  builder: row.builder ?? null,
})

export function triggerOrder(state: ExchangeState, place: Place, row: OrderTriggered): void {
  const order = needOrder(state, place, row.order_id)
  const delta = BigInt(row.reserved_delta)
  state.orders.put({
    ...order,
    seq: place.seq,
    status: 'OPEN',
    triggeredAt: row.at as Millis,
    openable: row.openable as Steps,
    reservedPrice: row.reserved_price as Ticks,
    reserved: (order.reserved + delta) as Quote,
  })
  changeNote(state, row.order_id, { triggered: evidenceOf(row) })
  addFunds(state, row.user_id, { reserved: delta })
}

/** The order has left the book. It has ended, or it ends once its settling steps are mined or voided. */
export function endOrder(state: ExchangeState, place: Place, row: OrderEnding | OrderEnded): void {
  state.orders.put(endedOrder(needOrder(state, place, row.order_id), place.seq, row))
  const before = state.orderNotes.get(row.order_id)
  if (before !== undefined || row.note !== null) changeNote(state, row.order_id, endedNote(before, row))
  addFunds(state, row.user_id, { reserved: BigInt(row.reserved_delta) })
}

/** The order after the row with sequence `seq`. */
export function endedOrder(order: OrderRow, seq: Seq, row: OrderEnding | OrderEnded): OrderRow {
  const isEnded = row.kind === 'order_ended'
  return {
    ...order,
    // The replacing order has taken over the label.
    labelHash: row.reason === 'REPLACED' ? 0 : order.labelHash,
    status: row.status,
    statusReason: isEnded ? row.reason : null,
    closingReason: isEnded ? null : (row.reason as ClosingReason),
    openable: 0 as Steps,
    reserved: (order.reserved + BigInt(row.reserved_delta)) as Quote,
    endedAt: isEnded ? (row.at as Millis) : null,
    endedSeq: isEnded ? seq : (0 as Seq),
  }
}

export const endedNote = (
  before: OrderNote | undefined,
  row: OrderEnding | OrderEnded,
): Pick<OrderNote, 'note' | 'closedBy'> => ({
  note: row.note ?? before?.note ?? null,
  closedBy: row.reason === 'POSITION_CLOSED' ? (before?.closedBy ?? null) : null,
})

export function reserveOrder(state: ExchangeState, place: Place, row: ReservationChanged): void {
  const order = needOrder(state, place, row.order_id)
  const delta = BigInt(row.reserved_delta)
  state.orders.put({
    ...order,
    openable: row.openable as Steps,
    reservedPrice: row.reserved_price as Ticks,
    reserved: (order.reserved + delta) as Quote,
  })
  addFunds(state, row.user_id, { reserved: delta })
}

/** A batch left the forced order unfilled. */
export function widenOrder(state: ExchangeState, place: Place, row: LiquidationChanged): void {
  if (row.step !== 'widened' || row.order_id === null) return
  state.orders.put({ ...needOrder(state, place, row.order_id), widenings: row.widenings })
}

/** An order after a block, with its fills applied. The block's rollback restores the order's reservation. */
export function settleStatus(
  state: ExchangeState,
  place: Place,
  settled: SettledOrder,
  { at, rollback }: { readonly at: number; readonly rollback: boolean },
): void {
  const order = findOrder(state, place, settled.order_id)
  if (order === undefined) return
  const isEnded = isTerminal(settled.status)
  const delta = rollback ? -BigInt(settled.reserved_delta) : BigInt(settled.reserved_delta)
  const closing = settled.reason ?? settled.closing_reason ?? null
  state.orders.put({
    ...order,
    status: settled.status,
    statusReason: isEnded ? settled.reason : null,
    closingReason: isEnded ? null : (closing as ClosingReason | null),
    openable: isEnded ? (0 as Steps) : order.openable,
    reserved: (order.reserved + delta) as Quote,
    endedAt: isEnded ? (order.endedAt ?? (at as Millis)) : null,
    endedSeq: isEnded ? place.seq : (0 as Seq),
  })
  changeNote(state, settled.order_id, { closedBy: settled.closed_by ?? null })
  addFunds(state, settled.user_id, { reserved: delta })
}

export const idOf = ({ marketId, accepted }: Pick<OrderRow, 'marketId' | 'accepted'>): string =>
  orderIdOf(marketId, accepted as Seq)
