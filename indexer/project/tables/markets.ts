/** `read.markets`: one row per market, with its specification and latest prices. */
import type { Selectable } from 'kysely'
import type { ReadMarketsTable } from '../../../db/read-schema.ts'
import { invariant } from '../../../domain/invariant.ts'
import type { MarketListed } from '../../../domain/journal/journal-row.ts'
import type { MarketKind } from '../../../domain/market/market.ts'
import { tableOf } from '../read-table.ts'
import type { RowChange, ShardEntry } from '../row-change.ts'

export type ReadMarket = Selectable<ReadMarketsTable>

export const MARKETS = tableOf<ReadMarket>({
  table: 'read.markets',
  key: ['market_id'],
  columns: {
    market_id: 'integer',
    symbol: 'text',
    kind: 'text',
    spec: 'jsonb',
    oracle_price: 'numeric',
    oracle_at: 'bigint',
    mark_price: 'numeric',
    last_price: 'bigint',
    last_batch_id: 'bigint',
  },
})

export function marketChanges({ marketId, row }: ShardEntry): RowChange<ReadMarket>[] {
  switch (row.kind) {
    case 'market_listed':
      return [{ key: String(marketId), apply: () => listed(marketId, row) }]
    case 'prices_updated':
      return [
        change(marketId, {
          oracle_price: BigInt(row.oracle_price),
          oracle_at: row.oracle_at,
          mark_price: BigInt(row.mark_price),
        }),
      ]
    case 'batch_cleared':
      return [change(marketId, { last_price: row.price, last_batch_id: row.batch_id })]
    default:
      return []
  }
}

const listed = (marketId: number, { spec }: MarketListed): ReadMarket => ({
  market_id: marketId,
  symbol: String(spec.symbol),
  kind: spec.kind as MarketKind,
  spec,
  oracle_price: null,
  oracle_at: null,
  mark_price: null,
  last_price: null,
  last_batch_id: null,
})

const change = (marketId: number, fields: Partial<ReadMarket>): RowChange<ReadMarket> => ({
  key: String(marketId),
  apply: (market) => {
    invariant(
      market !== undefined,
      `the journal has a row of market ${marketId} before its market_listed row`,
    )
    return { ...market, ...fields }
  },
})
