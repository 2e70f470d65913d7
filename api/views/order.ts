/** Rows of orders as a trader sees them. */
import type { Selectable } from 'kysely'
import type { TriggerEvidence } from '../../domain/log.ts'
import { type MarketSpec, priceOf, quantityOf } from '../../domain/market.ts'
import type { Steps, Ticks } from '../../domain/units.ts'
import type { ReadOrdersTable } from '../../indexer/db/read-schema.ts'
import type { Order } from '../schemas/order.ts'
import type { Trigger } from '../schemas/trigger.ts'
import { amount, isoTime, maybeAmount } from './amounts.ts'

export type OrderRow = Omit<Selectable<ReadOrdersTable>, 'arrival'>

/** Average price of what is filled: value is the sum of price x steps, in ticks. */
const averagePrice = (spec: MarketSpec, { filled, filled_value }: OrderRow): bigint | null =>
  filled === 0 ? null : (filled_value * spec.tick) / BigInt(filled)

export function orderView(spec: MarketSpec, row: OrderRow): Order {
  const quantity = (steps: number): bigint => quantityOf(spec, steps as Steps)
  const price = (ticks: number): bigint => priceOf(spec, ticks as Ticks)
  return {
    order_id: row.order_id,
    order_hash: row.hash,
    market_id: row.market_id,
    symbol: spec.symbol,
    user_id: row.user_id,
    maker: row.maker,
    signer: row.signer,
    side: row.side,
    order_type: row.type,
    status: row.status,
    status_reason: row.status_reason,
    cancel_reason: row.note,
    ...amount('price', price(row.price)),
    ...amount('quantity', quantity(row.quantity)),
    ...amount('filled_quantity', quantity(row.filled)),
    ...amount('settling_quantity', quantity(row.settling)),
    ...amount('remaining_quantity', quantity(row.quantity - row.filled - row.settling)),
    ...maybeAmount('average_price', averagePrice(spec, row)),
    ...amount('fee', row.fee),
    ...amount('reserved_margin', row.reserved),
    ...amount('trigger_price', price(row.trigger)),
    trigger: triggerView(row.triggered),
    leverage: row.leverage,
    reduce_only: row.reduce_only,
    expiration_seconds: row.expiration,
    salt: String(row.salt),
    created_at: isoTime(row.accepted_at),
    updated_at: isoTime(row.updated_at),
  }
}

/** What triggered an order; null for one that waits still or never waited. */
export const triggerView = (evidence: TriggerEvidence | null): Trigger | null =>
  evidence && {
    at: isoTime(evidence.at),
    ...amount('mark_price', BigInt(evidence.mark_price)),
    ...amount('oracle_price', BigInt(evidence.oracle_price)),
    oracle_price_at: isoTime(evidence.oracle_at),
    batch_id: evidence.batch_id,
  }
