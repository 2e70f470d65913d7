/** Converts an order's row to its JSON form. */
import type { Selectable } from 'kysely'
import type { ReadOrdersTable } from '../../db/read-schema.ts'
import type { TriggerEvidence } from '../../domain/journal/journal-row.ts'
import { type MarketSpec, priceOf, quantityOf } from '../../domain/market/market.ts'
import { effectiveLimit } from '../../domain/orders/opening-limit.ts'
import { isMarketType } from '../../domain/orders/order.ts'
import type { Price, Steps, Ticks } from '../../domain/units.ts'
import { amount, isoTime, toNumber } from '../wire/amounts.ts'
import type { Order } from './schema.ts'
import type { Trigger } from './trigger-schema.ts'

export type OrderRow = Omit<Selectable<ReadOrdersTable>, 'arrival'>

/** Average price of the filled quantity; `filled_value` is the sum of price × steps, in ticks. */
const averagePrice = (spec: MarketSpec, { filled, filled_value }: OrderRow): bigint | null =>
  filled === 0 ? null : (filled_value * spec.tick) / BigInt(filled)

/** The limit at which the order takes part at the oracle price; null if that is its own limit, or if the order is not a limit order in the book. */
function effectivePrice(spec: MarketSpec, row: OrderRow, oracle: Price | null): bigint | null {
  const isInBook = row.status === 'OPEN' && row.status_reason === null
  if (!isInBook || isMarketType(row.type) || oracle === null) return null
  const limit = row.price as Ticks
  const terms = { side: row.side, limit, leverage: row.leverage, opens: row.openable > 0 }
  const effective = effectiveLimit(spec, terms, oracle)
  return effective === limit ? null : priceOf(spec, effective)
}

/** Rows of the feed from before the columns of flags existed do not have them. */
const flagsOf = ({
  unused = 0,
  time_in_force = 'gtc',
  post_only = false,
  replaces = null,
  bracket = 0,
  builder = null,
}: Partial<OrderRow>) => ({ unused, time_in_force, post_only, replaces, bracket, builder })

/**
 * Amount fields are written out because a batch has fifty orders, and spreading `amount()` objects takes twice the time.
 * `oracle` is null if the market has no oracle price.
 */
export function orderView(spec: MarketSpec, row: OrderRow, oracle: Price | null): Order {
  const price = priceOf(spec, row.price as Ticks)
  const quantity = quantityOf(spec, row.quantity as Steps)
  const { unused, ...flags } = flagsOf(row)
  const signed = unused === 0 ? quantity : quantityOf(spec, (row.quantity + unused) as Steps)
  const filled = quantityOf(spec, row.filled as Steps)
  const settling = quantityOf(spec, row.settling as Steps)
  const remaining = quantity - filled - settling
  const average = averagePrice(spec, row)
  const trigger = priceOf(spec, row.trigger as Ticks)
  const effective = effectivePrice(spec, row, oracle)
  const { protection_price: tick } = row
  const protection = tick === null ? null : priceOf(spec, tick as Ticks)
  const acceptedAt = isoTime(row.accepted_at)
  return {
    order_id: row.order_id,
    order_hash: row.hash,
    // Rows of the feed from before the column existed do not have it.
    client_order_id: row.client_order_id ?? null,
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
    price: toNumber(price),
    price_e18_raw: String(price),
    effective_price: effective === null ? null : toNumber(effective),
    effective_price_e18_raw: effective === null ? null : String(effective),
    protection_price: protection === null ? null : toNumber(protection),
    protection_price_e18_raw: protection === null ? null : String(protection),
    quantity: toNumber(quantity),
    quantity_e18_raw: String(quantity),
    signed_quantity: toNumber(signed),
    signed_quantity_e18_raw: String(signed),
    filled_quantity: toNumber(filled),
    filled_quantity_e18_raw: String(filled),
    settling_quantity: toNumber(settling),
    settling_quantity_e18_raw: String(settling),
    remaining_quantity: toNumber(remaining),
    remaining_quantity_e18_raw: String(remaining),
    average_price: average === null ? null : toNumber(average),
    average_price_e18_raw: average === null ? null : String(average),
    fee: toNumber(row.fee),
    fee_e18_raw: String(row.fee),
    reserved_margin: toNumber(row.reserved),
    reserved_margin_e18_raw: String(row.reserved),
    trigger_price: toNumber(trigger),
    trigger_price_e18_raw: String(trigger),
    trigger: triggerView(row.triggered),
    leverage: row.leverage,
    reduce_only: row.reduce_only,
    time_in_force: flags.time_in_force,
    post_only: flags.post_only,
    bracket_id: flags.bracket === 0 ? null : flags.bracket,
    replaces: flags.replaces,
    builder: flags.builder,
    forced: row.forced,
    expiration_seconds: row.expiration,
    salt: String(row.salt),
    created_at: acceptedAt,
    updated_at: row.updated_at === row.accepted_at ? acceptedAt : isoTime(row.updated_at),
  }
}

/** Evidence of the order's trigger; null if it still waits or is not conditional. */
export const triggerView = (evidence: TriggerEvidence | null): Trigger | null =>
  evidence && {
    at: isoTime(evidence.at),
    ...amount('mark_price', BigInt(evidence.mark_price)),
    ...amount('oracle_price', BigInt(evidence.oracle_price)),
    oracle_price_at: isoTime(evidence.oracle_at),
    batch_id: evidence.batch_id,
  }
