/** `read.markets`: one row per market, with its specification and latest prices. */
import { type Selectable, sql } from 'kysely'
import { PROJECTED_TABLES, type ReadMarketsTable } from '../../../db/read-schema.ts'
import { invariant } from '../../../domain/invariant.ts'
import type { MarketListed } from '../../../domain/journal/journal-row.ts'
import type { MarketKind } from '../../../domain/market/market.ts'
import { DEFAULT_PRICE_PROTECTION } from '../../../domain/market/price-protection.ts'
import { rowProjection } from '../projection.ts'
import { tableOf } from '../read-table.ts'
import type { RowChange, ShardEntry } from '../row-change.ts'

type ReadMarket = Selectable<ReadMarketsTable>

const MARKETS = tableOf<ReadMarket>({
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
    price_protection: 'numeric',
    next_price_protection: 'numeric',
    next_price_protection_at: 'bigint',
  },
})

export const markets = rowProjection<ReadMarket>({
  name: 'markets',
  version: 1,
  tables: PROJECTED_TABLES.markets,
  table: MARKETS,
  changes: marketChanges,
  feed: (rows) => rows.map(({ spec: _, ...row }) => ({ marketId: row.market_id, markets: [row] })),
  async load(tx, ids) {
    const { rows } = await sql<ReadMarket>`
      select * from read.markets where market_id = any(${ids}::integer[])
    `.execute(tx)
    return rows.map((market) => [String(market.market_id), market] as const)
  },
})

function marketChanges({ marketId, row }: ShardEntry): RowChange<ReadMarket>[] {
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
    case 'protection_announced':
      return [
        change(marketId, {
          price_protection: BigInt(row.price_protection),
          next_price_protection: BigInt(row.next_price_protection),
          next_price_protection_at: row.next_price_protection_at,
        }),
      ]
    case 'batch_cleared':
      return [change(marketId, { last_price: row.price, last_batch_id: row.batch_id })]
    default:
      return []
  }
}

const listed = (marketId: number, { spec, price_protection }: MarketListed): ReadMarket => ({
  market_id: marketId,
  symbol: String(spec.symbol),
  kind: spec.kind as MarketKind,
  spec,
  oracle_price: null,
  oracle_at: null,
  mark_price: null,
  last_price: null,
  last_batch_id: null,
  price_protection: BigInt(price_protection ?? DEFAULT_PRICE_PROTECTION[spec.kind as MarketKind]),
  next_price_protection: null,
  next_price_protection_at: null,
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
