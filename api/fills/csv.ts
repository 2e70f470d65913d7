/** Fills as CSV: the fields of the JSON form in its order, amounts as exact decimals. */
import { type MarketSpec, priceOf, quantityOf } from '../../domain/market/market.ts'
import type { Steps, Ticks } from '../../domain/units.ts'
import { decimalText, isoTime } from '../wire/amounts.ts'
import type { Cell } from '../wire/csv.ts'
import { changedAt, type FillRow } from './view.ts'

export const CSV_HEADER = [
  ...['fill_id', 'order_id', 'user_id', 'market_id', 'symbol', 'batch_id', 'part', 'action_id', 'side'],
  ...['forced', 'status', 'price', 'quantity', 'taker_quantity', 'protection_price', 'fee', 'realized_pnl'],
  ...['available_margin_delta', 'tx_hash', 'block_number', 'created_at', 'updated_at', 'builder'],
] as const

const decimal = (wei: bigint | null): Cell => (wei === null ? null : { decimal: decimalText(wei) })

export function csvOf(spec: MarketSpec, row: FillRow): readonly Cell[] {
  const protection = row.protection_price === null ? null : priceOf(spec, row.protection_price as Ticks)
  return [
    ...[row.fill_id, row.order_id, row.user_id, row.market_id, spec.symbol, row.batch_id, row.part],
    ...[row.action_id, row.side, String(row.forced), row.status],
    decimal(priceOf(spec, row.price as Ticks)),
    decimal(quantityOf(spec, row.steps as Steps)),
    decimal(quantityOf(spec, row.taker_steps as Steps)),
    decimal(protection),
    ...[decimal(row.fee ?? 0n), decimal(row.realized_pnl), decimal(row.available_margin_delta)],
    ...[row.tx_hash, row.block, isoTime(row.matched_at), isoTime(changedAt(row)), row.builder],
  ]
}
