/** `read.order_events`: one row per event of an order, of five kinds. CREATED is derived from the order's row; `read.order_changes` stores the rest. */
import type { Selectable } from 'kysely'
import type { ReadOrderEventsTable } from '../../../db/read-schema.ts'
import type { OrderEnded, OrderPlaced, PartSettled } from '../../../domain/journal/journal-row.ts'
import type { OrderEventKind } from '../../../domain/orders/order-state.ts'
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

/** The events of one part, by the orders that they belong to. */
export interface PartEvents extends PartRef {
  readonly order_ids: readonly string[]
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
    default:
      return []
  }
}

/**
 * The events that a rollback deletes. The keeper sends the same transactions again: either they are mined and write the same events
 * once more, or the fills fail. Either way the remaining events are the ones that took effect.
 */
export function rolledBackEvents({ marketId, row }: ShardEntry): PartEvents | null {
  if (row.kind !== 'part_settled' || !row.rollback) return null
  const order_ids = row.orders.map(({ order_id }) => order_id)
  return { market_id: marketId, batch_id: row.batch_id, part: row.part, order_ids }
}

/** True if the event comes from the part. */
export function belongsTo(event: ReadOrderEvent, part: PartRef): boolean {
  const details = event.details as Partial<PartRef>
  return (
    details.market_id === part.market_id && details.batch_id === part.batch_id && details.part === part.part
  )
}

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
  const part = { market_id: marketId, batch_id: row.batch_id, part: row.part }
  return row.orders.flatMap(({ order_id, user_id, status, reason }) => {
    const order = { order_id, user_id, at: row.at }
    const fills = row.fills.filter((fill) => fill.order_id === order_id)
    const kind: OrderEventKind = status === 'FILLED' ? 'FILLED' : 'PARTIALLY_FILLED'
    const filled = fills.map(({ fill_id, steps, fee }): EventFields => {
      const { price, tx_hash, action_id } = row
      return { ...order, kind, details: { ...part, fill_id, price, steps, fee, tx_hash, action_id } }
    })
    if (status !== 'CANCELLED' && status !== 'EXPIRED') return filled
    return [...filled, { ...order, kind: status, details: { ...part, reason } }]
  })
}
