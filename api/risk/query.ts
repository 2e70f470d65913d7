/**
 * Reads a market's risk: prices and sums from the read model, its backstop and the bank's pause from the write side.
 */
import { sql } from 'kysely'
import type { Db, Tx } from '../../db/client.ts'
import { fundingColumn, type StoredFunding } from '../../db/funding.ts'
import type { ReadMarketRiskTable } from '../../db/read-risk-schema.ts'

/** Tables of the read model that `riskOfMarket` reads. */
export const RISK_TABLES = [
  ...(['read.markets', 'read.open_interest', 'read.market_risk', 'read.users', 'read.positions'] as const),
  'read.balances',
] as const

export interface RiskRow extends Omit<ReadMarketRiskTable, 'market_id'> {
  readonly oracle_price: bigint | null
  readonly open_steps: number
  readonly backstop: string | null
  readonly backstop_cap: bigint
  /** Size of the backstop's position; 0 if flat. */
  readonly size: number
  readonly entry_notional: bigint
  readonly folded_margin: bigint
  readonly leverage: number
  readonly free: bigint
  /** Unix seconds. */
  readonly pause_ends_at: number
  readonly running: number
  readonly funding: StoredFunding
}

/** Rows by their keys; as many as liquidations run now are counted. */
export async function riskOfMarket(db: Db | Tx, marketId: number): Promise<RiskRow> {
  const { rows } = await sql<RiskRow>`
    select m.backstop, m.backstop_cap, coalesce((m.ended ->> 'price')::numeric, p.oracle_price) as oracle_price, coalesce(o.steps, 0) as open_steps,
      coalesce(r.inheritances, 0) as inheritances, coalesce(r.inherited_steps, 0) as inherited_steps,
      coalesce(r.failed_inheritances, 0) as failed_inheritances, coalesce(r.deleveragings, 0) as deleveragings,
      coalesce(r.deleveraged_steps, 0) as deleveraged_steps, coalesce(r.deleveraged_value, 0) as deleveraged_value,
      coalesce(r.payouts, 0) as payouts, coalesce(r.deficits, 0) as deficits, coalesce(r.deficit, 0) as deficit,
      coalesce(r.covered, 0) as covered,
      coalesce(b.size, 0) as size, coalesce(b.entry_notional, 0) as entry_notional,
      coalesce(b.folded_margin, 0) as folded_margin, coalesce(b.leverage, 0) as leverage, coalesce(c.free, 0) as free,
      coalesce((select bank_pause_ends_at from chain_progress limit 1), 0) as pause_ends_at,
      (select count(*) from liquidations l where l.market_id = m.market_id) as running,
      ${sql.raw(fundingColumn('m.market_id'))} as funding
    from markets m
    left join read.markets p on p.market_id = m.market_id
    left join read.open_interest o on o.market_id = m.market_id
    left join read.market_risk r on r.market_id = m.market_id
    left join read.users u on u.address = m.backstop
    left join read.positions b on b.user_id = u.user_id and b.market_id = m.market_id
    left join read.balances c on c.user_id = u.user_id
    where m.market_id = ${marketId}
  `.execute(db)
  return rows[0] as RiskRow
}
