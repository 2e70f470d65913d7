/** `read.order_events`: the life of each order in its five kinds of event. The first, CREATED, is kept as the order's row. */
import type { Selectable } from 'kysely'
import type { ReadOrderEventsTable } from '../../../db/read-schema.ts'
import type { OrderEnded, OrderPlaced, PartSettled } from '../../../domain/journal/journal-row.ts'
import type { OrderEventKind } from '../../../domain/orders/order-state.ts'
import type { ShardEntry } from '../row-change.ts'
import type { ReadOrder } from './orders.ts'

export type ReadOrderEvent = Omit<Selectable<ReadOrderEventsTable>, 'arrival'>

/** Events of a mined part, as their details name it. */
export interface PartRef {
  readonly market_id: number
  readonly batch_id: number
  readonly part: number
}

/** A part, and the orders that it tells of. */
export interface PartEvents extends PartRef {
  readonly order_ids: readonly string[]
}

type EventFields = Pick<ReadOrderEvent, 'order_id' | 'user_id' | 'kind' | 'details' | 'at'>

export function orderEvents({ shard, marketId, seq, row }: ShardEntry): ReadOrderEvent[] {
  const at = (told: EventFields, place: number): ReadOrderEvent => ({ shard, seq, place, ...told })
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
 * The part whose events a row takes away: when its block leaves the chain, the same transactions are sent again and tell the same
 * once more, or the fills fail. Either way what is left is what happened.
 */
export function rolledBackEvents({ marketId, row }: ShardEntry): PartEvents | null {
  if (row.kind !== 'part_settled' || !row.rollback) return null
  const order_ids = row.orders.map(({ order_id }) => order_id)
  return { market_id: marketId, batch_id: row.batch_id, part: row.part, order_ids }
}

/** Whether the event tells of the part. */
export function belongsTo(event: ReadOrderEvent, part: PartRef): boolean {
  const details = event.details as Partial<PartRef>
  return (
    details.market_id === part.market_id && details.batch_id === part.batch_id && details.part === part.part
  )
}

/** The kinds of event are closed: what triggered an order is told with every event after it. */
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
    const told = fills.map(({ fill_id, steps, fee }): EventFields => {
      const { price, tx_hash, action_id } = row
      return { ...order, kind, details: { ...part, fill_id, price, steps, fee, tx_hash, action_id } }
    })
    if (status !== 'CANCELLED' && status !== 'EXPIRED') return told
    return [...told, { ...order, kind: status, details: { ...part, reason } }]
  })
}
