/** `read.order_events`: the life of each order in its five kinds of event. */
import type { Selectable } from 'kysely'
import type { OrderEnded, OrderPlaced, PartSettled } from '../../domain/log.ts'
import type { OrderStatus } from '../../domain/order.ts'
import type { OrderEventKind } from '../../domain/order-state.ts'
import type { ReadOrderEventsTable } from '../db/read-schema.ts'
import type { Entry } from './change.ts'

export type ReadOrderEvent = Selectable<ReadOrderEventsTable>

/** Events of a mined part, as their details name it. */
export interface PartOf {
  readonly market_id: number
  readonly batch_id: number
  readonly part: number
}

type Told = Pick<ReadOrderEvent, 'order_id' | 'user_id' | 'kind' | 'details' | 'at'>

export function orderEvents({ shard, marketId, seq, row }: Entry): ReadOrderEvent[] {
  const at = (told: Told, place: number): ReadOrderEvent => ({ shard, seq, place, ...told })
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
export function takenBack({ marketId, row }: Entry): PartOf | null {
  if (row.kind !== 'part_settled' || !row.rollback) return null
  return { market_id: marketId, batch_id: row.batch_id, part: row.part }
}

/** Whether the event tells of the part. */
export function isOf(event: ReadOrderEvent, part: PartOf): boolean {
  const details = event.details as Partial<PartOf>
  return (
    details.market_id === part.market_id && details.batch_id === part.batch_id && details.part === part.part
  )
}

const created = (row: OrderPlaced): Told => ({
  order_id: row.order_id,
  user_id: row.user_id,
  kind: 'CREATED',
  details: { status: row.status },
  at: row.accepted_at,
})

const ended = (row: OrderEnded): Told => ({
  order_id: row.order_id,
  user_id: row.user_id,
  kind: row.status,
  details: { reason: row.reason, note: row.note },
  at: row.at,
})

/** One event per fill, and one more for an order that ends with a remainder. */
function settled(marketId: number, row: PartSettled): Told[] {
  const ends = new Map(row.orders.map((order) => [order.order_id, order]))
  const fills = row.fills.filter(({ order_id }) => ends.has(order_id))
  const part = { market_id: marketId, batch_id: row.batch_id, part: row.part }
  return fills.flatMap((fill) => {
    const end = ends.get(fill.order_id)
    const told = { order_id: fill.order_id, user_id: fill.user_id, at: row.at }
    const details = { ...part, fill_id: fill.fill_id, price: row.price, steps: fill.steps, fee: fill.fee }
    const kind: OrderEventKind = end?.status === 'FILLED' ? 'FILLED' : 'PARTIALLY_FILLED'
    const filled: Told = { ...told, kind, details: { ...details, tx_hash: row.tx_hash } }
    if (!endsUnfilled(end?.status)) return [filled]
    return [filled, { ...told, kind: end.status, details: { ...part, reason: end.reason } }]
  })

  function endsUnfilled(status: OrderStatus | undefined): status is 'CANCELLED' | 'EXPIRED' {
    return status === 'CANCELLED' || status === 'EXPIRED'
  }
}
