/** `read.funding_rates`: one row per mined funding update. */
import { type Selectable, sql } from 'kysely'
import { PROJECTED_TABLES, type ReadFundingRatesTable } from '../../../db/read-schema.ts'
import type { FundingUpdatedRow } from '../../../domain/journal/action-rows.ts'
import { keyColumns, rowProjection } from '../projection.ts'
import { tableOf } from '../read-table.ts'

type ReadFundingRate = Selectable<ReadFundingRatesTable>

const FUNDING_RATES = tableOf<ReadFundingRate>({
  table: 'read.funding_rates',
  key: ['market_id', 'action_id'],
  columns: {
    market_id: 'integer',
    action_id: 'bigint',
    as_of: 'bigint',
    rate: 'numeric',
    valid_until: 'bigint',
    funding_index: 'numeric',
    oracle_price: 'numeric',
    oracle_at: 'bigint',
    tx_hash: 'text',
    is_mined: 'boolean',
  },
})

/** A row does not depend on the row before it: the action id may be mined again with another update. */
export const fundingRates = rowProjection<ReadFundingRate>({
  name: 'funding_rates',
  version: 1,
  tables: PROJECTED_TABLES.funding_rates,
  table: FUNDING_RATES,
  changes: ({ marketId, row }) =>
    row.kind === 'funding_updated'
      ? [{ key: `${marketId} ${row.action_id}`, apply: () => fundingRate(marketId, row) }]
      : [],
  async load(tx, keys) {
    const [markets, actions] = keyColumns(keys, 2)
    const { rows } = await sql<ReadFundingRate>`
      select stored.* from unnest(${markets}::integer[], ${actions}::bigint[]) as touched (market_id, action_id)
      cross join lateral (
        select * from read.funding_rates where market_id = touched.market_id and action_id = touched.action_id offset 0
      ) stored
    `.execute(tx)
    return rows.map((rate) => [`${rate.market_id} ${rate.action_id}`, rate] as const)
  },
})

const fundingRate = (marketId: number, row: FundingUpdatedRow): ReadFundingRate => ({
  market_id: marketId,
  action_id: row.action_id,
  as_of: row.as_of,
  rate: BigInt(row.rate),
  valid_until: row.valid_until,
  funding_index: BigInt(row.funding_index),
  oracle_price: BigInt(row.oracle_price),
  oracle_at: row.oracle_at,
  tx_hash: row.tx_hash,
  is_mined: !row.rollback,
})
