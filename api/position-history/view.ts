/** Converts a position's newest state to its JSON form. */
import { type MarketSpec, quantityOf } from '../../domain/market/market.ts'
import { divFloor, ONE, type Steps } from '../../domain/units.ts'
import { amount, isoTime, maybeTime } from '../wire/amounts.ts'
import type { PositionRow } from './query.ts'
import type { RecordedPosition } from './schema.ts'

export function recordedPositionView(spec: MarketSpec, row: PositionRow): RecordedPosition {
  const average = (value: bigint, steps: number): bigint =>
    steps === 0 ? 0n : divFloor(value * ONE, quantityOf(spec, steps as Steps))
  return {
    position_id: `${row.market_id}-${row.number}`,
    market_id: row.market_id,
    symbol: spec.symbol,
    side: row.side,
    ...amount('largest_size', quantityOf(spec, row.largest as Steps)),
    ...amount('opened_quantity', quantityOf(spec, row.opened_steps as Steps)),
    ...amount('average_entry_price', average(row.opened_value, row.opened_steps)),
    ...amount('average_exit_price', average(row.closed_value, row.closed_steps)),
    ...amount('realized_pnl', row.realized_pnl),
    ...amount('fees', row.fees),
    ...amount('funding', row.funding),
    ending: row.ending as RecordedPosition['ending'],
    opened_at: isoTime(row.opened_at),
    closed_at: maybeTime(row.closed_at),
  }
}
