/** Converts an order event's row to its JSON form. */
import type { Selectable } from 'kysely'
import type { ReadOrderEventsTable } from '../../db/read-schema.ts'
import type { TriggerEvidence } from '../../domain/journal/journal-row.ts'
import type { Wei } from '../../domain/journal/wei.ts'
import { type MarketSpec, priceOf, quantityOf } from '../../domain/market/market.ts'
import type { OrderStatus, StatusReason } from '../../domain/orders/order.ts'
import type { Steps, Ticks } from '../../domain/units.ts'
import { triggerView } from '../orders/view.ts'
import { isoTime, maybeAmount } from '../wire/amounts.ts'
import type { OrderEvent } from './schema.ts'

export type OrderEventRow = Selectable<ReadOrderEventsTable> & {
  readonly hash: string
  readonly client_order_id: string | null
  readonly market_id: number
}

/** The JSON that the projector writes into `details`; the fields depend on the kind of event. */
interface Details {
  readonly status?: OrderStatus
  readonly reason?: StatusReason
  readonly note?: string | null
  readonly batch_id?: number
  readonly part?: number
  readonly action_id?: number
  readonly tx_hash?: string
  readonly fill_id?: string
  /** Price in ticks and quantities in steps. */
  readonly price?: number
  readonly steps?: number
  readonly fee?: Wei
  readonly trigger?: TriggerEvidence
}

/** The position of an event among all events of its account. */
export interface EventPlace {
  readonly arrival: number
  readonly shard: string
  readonly seq: number
  readonly place: number
}

export const eventId = ({ shard, seq, place }: Pick<EventPlace, 'shard' | 'seq' | 'place'>): string =>
  `${shard}-${seq}-${place}`

/** Null if the text is not an event id. */
export function parseEventId(text: string): Omit<EventPlace, 'arrival'> | null {
  const match = /^(m\d{1,10})-(\d{1,15})-(\d{1,9})$/.exec(text)
  return match && { shard: match[1] as string, seq: Number(match[2]), place: Number(match[3]) }
}

const orNull = <Value, Shown>(value: Value | undefined, show: (value: Value) => Shown): Shown | null =>
  value === undefined ? null : show(value)

export function eventView(spec: MarketSpec, row: OrderEventRow): OrderEvent {
  const details = row.details as Details
  const { price, steps, fee } = details
  return {
    event_id: eventId(row),
    kind: row.kind,
    order_id: row.order_id,
    order_hash: row.hash,
    client_order_id: row.client_order_id,
    user_id: row.user_id,
    market_id: row.market_id,
    symbol: spec.symbol,
    shard_seq: String(row.seq),
    created_at: isoTime(row.at),
    details: {
      status: details.status ?? null,
      status_reason: details.reason ?? (row.kind === 'FILLED' ? 'FILLED' : null),
      cancel_reason: details.note ?? null,
      fill_id: details.fill_id ?? null,
      batch_id: details.batch_id ?? null,
      part: details.part ?? null,
      action_id: details.action_id ?? null,
      tx_hash: details.tx_hash ?? null,
      ...maybeAmount(
        'price',
        orNull(price, (ticks) => priceOf(spec, ticks as Ticks)),
      ),
      ...maybeAmount(
        'quantity',
        orNull(steps, (count) => quantityOf(spec, count as Steps)),
      ),
      ...maybeAmount('fee', orNull(fee, BigInt)),
      trigger: triggerView(details.trigger ?? null),
    },
  }
}
