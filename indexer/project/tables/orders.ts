/** `read.orders`: one row per accepted order, open or ended. */
import type { Selectable } from 'kysely'
import type { ReadOrdersTable } from '../../../db/read-schema.ts'
import { invariant } from '../../../domain/invariant.ts'
import type { MatchedFill, PartSettled, SettledOrder } from '../../../domain/journal/batch-rows.ts'
import {
  evidenceOf,
  type OrderPlaced,
  type OrderTriggered,
  type PositionsMoved,
} from '../../../domain/journal/journal-row.ts'
import { isTerminal } from '../../../domain/orders/order-state.ts'
import { tableOf } from '../read-table.ts'
import { type RowChange, type ShardEntry, signedWei, signOfRow } from '../row-change.ts'

export type ReadOrder = Selectable<ReadOrdersTable>

export const ORDERS = tableOf<ReadOrder>({
  table: 'read.orders',
  key: ['order_id'],
  columns: {
    order_id: 'text',
    market_id: 'integer',
    seq: 'bigint',
    user_id: 'bigint',
    maker: 'text',
    signer: 'text',
    hash: 'text',
    salt: 'bigint',
    side: 'text',
    type: 'text',
    price: 'bigint',
    quantity: 'bigint',
    trigger: 'bigint',
    leverage: 'integer',
    reduce_only: 'boolean',
    expiration: 'bigint',
    status: 'text',
    status_reason: 'text',
    note: 'text',
    filled: 'bigint',
    filled_value: 'numeric',
    settling: 'bigint',
    fee: 'numeric',
    reserved: 'numeric',
    held: 'numeric',
    openable: 'bigint',
    accepted_at: 'bigint',
    protection_price: 'bigint',
    triggered: 'jsonb',
    updated_at: 'bigint',
    arrival: 'bigint',
    forced: 'boolean',
    client_order_id: 'text',
    time_in_force: 'text',
    post_only: 'boolean',
    unused: 'bigint',
    replaces: 'text',
    bracket: 'bigint',
    builder: 'text',
  },
})

/** Columns that a journal row may change after the order was placed. */
const CHANGING = [
  'seq',
  'status',
  'status_reason',
  'note',
  'filled',
  'filled_value',
  'settling',
  'fee',
  'reserved',
  'held',
  'openable',
  'protection_price',
  'triggered',
  'updated_at',
] as const

type OrderChange = Partial<Pick<ReadOrder, (typeof CHANGING)[number]>>

export const changeOrders = ORDERS.update(CHANGING)

export function orderChanges({ marketId, seq, row }: ShardEntry): RowChange<ReadOrder>[] {
  switch (row.kind) {
    case 'order_placed':
      return [{ key: row.order_id, apply: () => placed(marketId, seq, row) }]
    case 'order_triggered':
      return [change(row.order_id, (order) => triggered(order, seq, row))]
    case 'order_ending':
    case 'order_ended':
      return [
        change(row.order_id, (order) => ({
          status: row.status,
          status_reason: row.reason,
          note: row.note ?? order.note,
          reserved: order.reserved + BigInt(row.reserved_delta),
          openable: 0,
          updated_at: row.at,
        })),
      ]
    case 'reservation_changed':
      return [
        change(row.order_id, (order) => ({
          reserved: order.reserved + BigInt(row.reserved_delta),
          openable: row.openable,
        })),
      ]
    case 'orders_protected':
      return row.orders.map(({ order_id, price }) => change(order_id, () => ({ protection_price: price })))
    case 'batch_cleared':
      return [
        ...row.fills.map((fill) => change(fill.order_id, (order) => matched(order, fill, row.as_of))),
        ...row.closing
          .filter(({ reason }) => reason === 'POSITION_CLOSED')
          .map(({ order_id, reason }) =>
            change(order_id, () => ({ status_reason: reason, updated_at: row.as_of })),
          ),
      ]
    case 'batch_voided':
      return [
        ...row.fills.map((fill) =>
          change(fill.order_id, ({ settling, held }) => ({
            settling: settling - fill.steps,
            // The held amount returns to the reservation. If that changes `openable`, a `reservation_changed` row
            // follows.
            held: held - BigInt(fill.held),
            updated_at: row.at,
          })),
        ),
        ...row.reopened.map((orderId) =>
          change(orderId, () => ({
            ...{ status: 'OPEN', status_reason: null, updated_at: row.at },
            // The next batch computes a new protection price.
            protection_price: null,
          })),
        ),
        ...(row.restored ?? []).map((orderId) =>
          change(orderId, () => ({ status_reason: null, updated_at: row.at })),
        ),
      ]
    case 'positions_moved':
      return statuses(row, row.orders ?? [])
    case 'part_settled':
      return settled(row)
    default:
      return []
  }
}

const placed = (marketId: number, seq: number, row: OrderPlaced): ReadOrder => ({
  order_id: row.order_id,
  market_id: marketId,
  seq,
  user_id: row.user_id,
  maker: row.maker,
  signer: row.signer,
  hash: row.hash,
  salt: row.salt,
  side: row.side,
  type: row.type,
  price: row.price,
  quantity: row.quantity,
  trigger: row.trigger,
  leverage: row.leverage,
  reduce_only: row.reduce_only,
  expiration: row.expiration,
  status: row.status,
  status_reason: null,
  note: null,
  filled: 0,
  filled_value: 0n,
  settling: 0,
  fee: 0n,
  reserved: BigInt(row.reserved),
  held: 0n,
  openable: row.openable,
  accepted_at: row.accepted_at,
  protection_price: null,
  triggered: null,
  updated_at: row.accepted_at,
  // A placeholder; the write assigns the number.
  arrival: 0,
  forced: row.forced ?? false,
  client_order_id: row.client_order_id ?? null,
  time_in_force: row.time_in_force ?? 'gtc',
  post_only: row.post_only ?? false,
  unused: row.unused ?? 0,
  replaces: row.replaces ?? null,
  bracket: row.bracket ?? 0,
  builder: row.builder ?? null,
})

const triggered = ({ reserved }: ReadOrder, seq: number, row: OrderTriggered): OrderChange => ({
  seq,
  status: 'OPEN',
  triggered: evidenceOf(row),
  reserved: reserved + BigInt(row.reserved_delta),
  openable: row.openable,
  updated_at: row.at,
})

/**
 * Steps that the fill opened, exact if the fill holds its share of the reservation. If it holds more, a
 * `reservation_changed` row or the order's end follows in the transaction.
 */
function matched(order: ReadOrder, { steps, held }: MatchedFill, at: number): OrderChange {
  const unheld = order.reserved - order.held
  const opened = unheld === 0n ? 0 : Number((BigInt(held) * BigInt(order.openable)) / unheld)
  return {
    settling: order.settling + steps,
    held: order.held + BigInt(held),
    openable: order.openable - opened,
    updated_at: at,
  }
}

const change = (orderId: string, fields: (order: ReadOrder) => OrderChange): RowChange<ReadOrder> => ({
  key: orderId,
  apply: (order) => {
    invariant(order !== undefined, `the journal has a row of order ${orderId} before its order_placed row`)
    return { ...order, ...fields(order) }
  },
})

/** Applies fills, then statuses. A fill with `matched` false may belong to an order that this database lacks. */
function settled(row: PartSettled): RowChange<ReadOrder>[] {
  const sign = signOfRow(row)
  const fills = row.fills.map((fill) =>
    changeIfKnown(fill.order_id, (order) => ({
      filled: order.filled + sign * fill.steps,
      settling: order.settling - (fill.matched ? sign * fill.steps : 0),
      filled_value: order.filled_value + BigInt(sign * row.price) * BigInt(fill.steps),
      fee: order.fee + signedWei(row, fill.fee),
      reserved: order.reserved - signedWei(row, fill.held),
      held: order.held - signedWei(row, fill.held),
      updated_at: row.at,
    })),
  )
  return [...fills, ...statuses(row, row.orders)]
}

const statuses = (
  row: PartSettled | PositionsMoved,
  orders: readonly SettledOrder[],
): RowChange<ReadOrder>[] =>
  orders.map(({ order_id, status, reason, reserved_delta }) =>
    change(order_id, ({ reserved, openable }) => ({
      status,
      status_reason: reason,
      openable: isTerminal(status) ? 0 : openable,
      reserved: reserved + signedWei(row, reserved_delta),
      updated_at: row.at,
    })),
  )

const changeIfKnown = (orderId: string, fields: (order: ReadOrder) => OrderChange): RowChange<ReadOrder> => ({
  key: orderId,
  apply: (order) => order && { ...order, ...fields(order) },
})
