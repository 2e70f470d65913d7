/** `read.order_events`: one row per event of an order, of five kinds. CREATED is derived from the order's row; `read.order_changes` stores the rest. */
import type { Selectable } from 'kysely'
import type { ReadOrderEventsTable } from '../../../db/read-schema.ts'
import type { PartSettled, SettledOrder } from '../../../domain/journal/batch-rows.ts'
import type { OrderEnded, OrderPlaced, PositionsMoved } from '../../../domain/journal/journal-row.ts'
import { isTerminal, type OrderEventKind } from '../../../domain/orders/order-state.ts'
import { tableOf } from '../read-table.ts'
import type { ShardEntry } from '../row-change.ts'
import type { ReadOrder } from './orders.ts'

export type ReadOrderEvent = Omit<Selectable<ReadOrderEventsTable>, 'arrival'>

/** An event with its place among those that its chunk makes visible: see `read.arrivals`. */
export interface ArrivedEvent extends ReadOrderEvent {
  readonly arrival: number
}

export const ORDER_CHANGES = tableOf<ArrivedEvent>({
  table: 'read.order_changes',
  key: ['shard', 'seq', 'place'],
  columns: {
    shard: 'text',
    seq: 'bigint',
    place: 'integer',
    order_id: 'text',
    user_id: 'bigint',
    kind: 'text',
    details: 'jsonb',
    at: 'bigint',
    arrival: 'bigint',
  },
})

/** A mined part, as the details of its events identify it. */
export interface PartRef {
  readonly market_id: number
  readonly batch_id: number
  readonly part: number
}

/** A log of the chain that moved positions, as the details of its events identify it. */
export interface MoveRef {
  readonly market_id: number
  readonly tx_hash: string
  readonly log_index: number
}

/** Events of orders by the part or the move that their details name, and all ends of the orders that have not ended any more. */
export interface SourceEvents {
  readonly order_ids: readonly string[]
  readonly source: PartRef | MoveRef
  readonly reopened: readonly string[]
}

type EventFields = Pick<ReadOrderEvent, 'order_id' | 'user_id' | 'kind' | 'details' | 'at'>

export function orderEvents({ shard, marketId, seq, row }: ShardEntry): ReadOrderEvent[] {
  const at = (fields: EventFields, place: number): ReadOrderEvent => ({ shard, seq, place, ...fields })
  switch (row.kind) {
    case 'order_placed':
      return [at(created(row), 0)]
    case 'order_ended':
      return [at(ended(row), 0)]
    case 'part_settled':
      return row.rollback ? [] : settled(marketId, row).map(at)
    case 'positions_moved':
      return row.rollback ? [] : moved(marketId, row).map(at)
    default:
      return []
  }
}

/**
 * Events that a rollback deletes. The keeper sends the same transactions again: they write the same events, or the
 * fills fail. Both leave only events that took effect.
 */
export function rolledBackEvents({ marketId, row }: ShardEntry): SourceEvents | null {
  if ((row.kind !== 'part_settled' && row.kind !== 'positions_moved') || !row.rollback) return null
  const orders = row.orders ?? []
  // An order that was cancelled after the fill waits for the fill again, so its end is deleted too.
  const reopened = orders.filter(({ status }) => !isTerminal(status)).map(({ order_id }) => order_id)
  const source = row.kind === 'positions_moved' ? moveRef(marketId, row) : partRef(marketId, row)
  return { order_ids: orders.map(({ order_id }) => order_id), source, reopened }
}

/** True if the event comes from the part or the move, or ends an order that has not ended any more. */
export function belongsTo(event: ReadOrderEvent, { source, reopened }: SourceEvents): boolean {
  if (isEnd(event.kind) && reopened.includes(event.order_id)) return true
  const details: Readonly<Record<string, unknown>> = { ...event.details }
  return Object.entries(source).every(([name, value]) => details[name] === value)
}

const isEnd = (kind: OrderEventKind): boolean => kind !== 'CREATED' && kind !== 'PARTIALLY_FILLED'

const partRef = (market_id: number, { batch_id, part }: PartSettled): PartRef => ({
  market_id,
  batch_id,
  part,
})
const moveRef = (market_id: number, { tx_hash, log_index }: PositionsMoved): MoveRef => ({
  market_id,
  tx_hash,
  log_index,
})

/** The kinds of event are a closed set, so every event after a trigger carries the trigger's evidence in its details. */
export const withTrigger = (event: ReadOrderEvent, order: ReadOrder | undefined): ReadOrderEvent =>
  order == null || order.triggered === null
    ? event
    : { ...event, details: { ...event.details, trigger: order.triggered } }

const created = (row: OrderPlaced): EventFields => ({
  order_id: row.order_id,
  user_id: row.user_id,
  kind: 'CREATED',
  details: { status: row.status },
  at: row.accepted_at,
})

const ended = (row: OrderEnded): EventFields => ({
  order_id: row.order_id,
  user_id: row.user_id,
  kind: row.status,
  details: { reason: row.reason, note: row.note },
  at: row.at,
})

/** One event per fill, and one more for an order that ends with a remainder, or without a fill of its own. */
function settled(marketId: number, row: PartSettled): EventFields[] {
  const part = partRef(marketId, row)
  return row.orders.flatMap(({ order_id, user_id, status, reason }) => {
    const order = { order_id, user_id, at: row.at }
    const fills = row.fills.filter((fill) => fill.order_id === order_id)
    const kind: OrderEventKind = status === 'FILLED' ? 'FILLED' : 'PARTIALLY_FILLED'
    const filled = fills.map(({ fill_id, steps, fee }): EventFields => {
      const { price, tx_hash, action_id } = row
      return { ...order, kind, details: { ...part, fill_id, price, steps, fee, tx_hash, action_id } }
    })
    const end = ending({ order_id, user_id, status, reason }, row.at, part)
    return [...filled, ...end]
  })
}

/** One event per order that ends because its position moved. */
const moved = (marketId: number, row: PositionsMoved): EventFields[] =>
  (row.orders ?? []).flatMap((order) => ending(order, row.at, moveRef(marketId, row)))

type Ending = Omit<SettledOrder, 'reserved_delta'>

function ending({ order_id, user_id, status, reason }: Ending, at: number, source: object): EventFields[] {
  if (status !== 'CANCELLED' && status !== 'EXPIRED') return []
  return [{ order_id, user_id, at, kind: status, details: { ...source, reason } }]
}
