/** Converts a batch's row to its JSON form. */
import { type MarketSpec, priceOf, quantityOf } from '../../domain/market/market.ts'
import type { Steps, Ticks } from '../../domain/units.ts'
import { amount, isoTime } from '../wire/amounts.ts'
import type { BatchRow } from './query.ts'
import type { Auction } from './schema.ts'

export function auctionView(spec: MarketSpec, row: BatchRow): Auction {
  const price = (ticks: number): bigint => priceOf(spec, ticks as Ticks)
  const quantity = (steps: number): bigint => quantityOf(spec, steps as Steps)
  return {
    market_id: row.market_id,
    symbol: spec.symbol,
    batch_id: row.batch_id,
    as_of: isoTime(row.as_of),
    status: row.status,
    ...amount('price', price(row.price)),
    rule: row.rule,
    rule_version: row.rule_version,
    ...amount('volume', quantity(row.volume)),
    ...amount('demand', quantity(row.demand)),
    ...amount('supply', quantity(row.supply)),
    price_band: { ...amount('lowest', price(row.lo)), ...amount('highest', price(row.hi)) },
    ...amount('oracle_price', row.oracle_price),
    oracle_price_at: isoTime(row.oracle_at),
  }
}
