/** Converts a batch's row to its JSON form. */
import { type MarketSpec, priceOf, quantityOf } from '../../domain/market/market.ts'
import { mulDivDown, ONE, type Steps, type Ticks } from '../../domain/units.ts'
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
    ...rationing(spec, row),
    transactions: row.part_states.map((state, at) => ({ part: at + 1, ...state })),
    price_band: { ...amount('lowest', price(row.lo)), ...amount('highest', price(row.hi)) },
    ...amount('oracle_price', row.oracle_price),
    oracle_price_at: isoTime(row.oracle_at),
  }
}

/** One side fills whole; of the other the larger quantity was eligible, of which the volume is the matched share. */
function rationing(spec: MarketSpec, { volume, demand, supply }: BatchRow) {
  const eligible = BigInt(Math.max(demand, supply))
  const rationed = demand > supply ? 'LONG' : 'SHORT'
  const surplus = BigInt(demand - supply) * spec.step
  return {
    ...amount('surplus', surplus),
    rationed_side: BigInt(volume) === eligible ? null : (rationed as 'LONG' | 'SHORT'),
    ...amount('fill_ratio', eligible === 0n ? ONE : mulDivDown(BigInt(volume), ONE, eligible)),
  }
}
