/** Orders and fills. Both stay in their tables when the state drops them: released orders, and fills that are confirmed or voided. */
import type { Statement } from '../../../db/round-trip.ts'
import type { Columns } from '../../../db/state-tables.ts'
import { fillsTable, ordersTable } from '../../../db/written-tables.ts'
import type { Entry } from '../../../domain/exchange/apply.ts'
import type { ExchangeState } from '../../../domain/exchange/state.ts'
import type { FillRow, OrderRow } from '../../../domain/exchange/tables/orders.ts'
import { acceptedSeq, orderIdOf } from '../../../domain/orders/order.ts'
import type { MarketId } from '../../../domain/units.ts'
import { type ChangedRows, Changes, type WrittenMark } from './changes.ts'
import { following, keeping, rowsOf, statements, type TablePart } from './part.ts'

function orderColumns(state: ExchangeState, order: OrderRow): Columns {
  const orderId = orderIdOf(order.marketId, order.accepted)
  const signed = state.signatures.need(order.marketId, order.accepted)
  const { note = null, closedBy = null, triggered = null } = state.orderNotes.get(orderId) ?? {}
  return {
    order_id: orderId,
    market_id: order.marketId,
    user_id: order.account,
    maker: state.users.need(order.account).address,
    signer: signed.signer,
    hash: signed.hash,
    signature: signed.signature,
    salt: order.salt,
    side: order.side,
    type: order.type,
    price: order.price,
    quantity: order.quantity,
    trigger: order.trigger,
    leverage: order.leverage,
    reduce_only: order.reduceOnly,
    expiration: order.expiration,
    alive_until: order.aliveUntil,
    accepted_at: order.acceptedAt,
    forced: order.forced,
    client_order_id: signed.clientOrderId,
    ...changingColumns(order),
    note,
    closed_by: closedBy,
    triggered,
  }
}

const changingColumns = (order: OrderRow): Columns => ({
  seq: order.seq,
  status: order.status,
  status_reason: order.statusReason,
  filled: order.filled,
  settling: order.settling,
  closing_reason: order.closingReason,
  openable: order.openable,
  reserved_price: order.reservedPrice,
  reserved: order.reserved,
  held: order.held,
  partial_slot: order.partialSlot,
  ended_at: order.endedAt,
})

export function orders(mark: WrittenMark, state: ExchangeState): TablePart {
  const changes = new Changes(mark, state.orders, {
    keyOf: ({ marketId, accepted }) => `${marketId}-${accepted}`,
    columnsOf: (order) => orderColumns(state, order),
  })
  /** Orders of which something other than their record has changed. */
  const noted = new Set<string>()
  state.orderNotes.observe((before, after) => noted.add((after ?? before)?.orderId as string))
  return {
    collect() {
      for (const orderId of noted) {
        const order = state.orders.get(Number(orderId.split('-', 1)[0]) as MarketId, acceptedSeq(orderId))
        if (order !== undefined) changes.touch(order)
      }
      noted.clear()
      return keeping(ordersTable, changes.take())
    },
    forget() {
      noted.clear()
      changes.forget()
    },
  }
}

const fillIdOf = ({ marketId, batchId, part, seq }: FillRow): string =>
  `${marketId}-${batchId}-${part}-${seq}`

const fillColumns = (fill: FillRow): Columns => ({
  fill_id: fillIdOf(fill),
  market_id: fill.marketId,
  batch_id: fill.batchId,
  part: fill.part,
  place: fill.place,
  order_id: orderIdOf(fill.marketId, fill.accepted),
  user_id: fill.account,
  side: fill.side,
  steps: fill.steps,
  taker_steps: fill.takerSteps,
  partial_slot: fill.partialSlot,
  held: fill.held,
  status: fill.status,
})

export const fills = (mark: WrittenMark, state: ExchangeState): TablePart =>
  following(mark, state.fills, { keyOf: fillIdOf, columnsOf: fillColumns }, writeFills)

/** A fill leaves the state when its part is confirmed, or its batch is voided. */
function writeFills({ put, changed, dropped }: ChangedRows, group: readonly Entry[]): Statement[] {
  const voided = new Set(
    rowsOf(group, 'batch_voided').flatMap(({ row }) => row.fills.map(({ fill_id }) => fill_id)),
  )
  const ended = dropped.map(({ columns }) => ({
    ...columns,
    status: voided.has(columns.fill_id as string) ? 'FAILED' : 'CONFIRMED',
  }))
  return [...statements(fillsTable.put, [...put, ...ended]), ...statements(fillsTable.change, changed)]
}
