/** `read.market_risk`: one row per market, with sums over its inheritances, deleveragings, deficits and coverages. */
import type { Selectable } from 'kysely'
import type { ReadMarketRiskTable } from '../../../db/read-risk-schema.ts'
import { PROJECTED_TABLES } from '../../../db/read-schema.ts'
import type { Projection } from '../projection.ts'
import { tableOf } from '../read-table.ts'
import { type ShardEntry, signedWei, signOfRow } from '../row-change.ts'
import { closedOf } from './margin-change.ts'

type MarketRisk = Selectable<ReadMarketRiskTable>

const MARKET_RISK = tableOf<MarketRisk>({
  table: 'read.market_risk',
  key: ['market_id'],
  columns: {
    market_id: 'integer',
    inheritances: 'bigint',
    inherited_steps: 'bigint',
    failed_inheritances: 'bigint',
    deleveragings: 'bigint',
    deleveraged_steps: 'bigint',
    deleveraged_value: 'numeric',
    payouts: 'numeric',
    deficits: 'bigint',
    deficit: 'numeric',
    covered: 'numeric',
  },
})

/** One row per market, written as a delta: rows of a market are projected by one projector at a time. */
export const risk: Projection = {
  name: 'risk',
  version: 1,
  tables: PROJECTED_TABLES.risk,
  async project(_tx, entries) {
    const changes = entries.flatMap(riskChanges)
    if (changes.length === 0) return { clauses: [] }
    const markets = Map.groupBy(changes, ({ market_id }) => market_id)
    return { clauses: [MARKET_RISK.add([...markets.values()].map((each) => each.reduce(sum)))] }
  },
}

function riskChanges({ marketId, row }: ShardEntry): MarketRisk[] {
  if (row.kind === 'inheritance_failed') return [change(marketId, { failed_inheritances: signOfRow(row) })]
  if (row.kind !== 'positions_moved') return []
  const [sign, paid] = [
    signOfRow(row),
    sumOf(row.balances.map(({ free_delta }) => signedWei(row, free_delta))),
  ]
  switch (row.cause) {
    case 'inherited':
      return [change(marketId, { inheritances: sign, inherited_steps: sign * (closedOf(row)?.steps ?? 0) })]
    case 'deleveraged': {
      const { steps, value } = closedOf(row) ?? { steps: 0, value: 0n }
      const closed = { deleveraged_steps: sign * steps, deleveraged_value: BigInt(sign) * value }
      return [change(marketId, { deleveragings: sign, ...closed, payouts: paid })]
    }
    case 'insolvency_reported':
      return [change(marketId, { deficits: sign, deficit: signedWei(row, row.deficit ?? '0') })]
    case 'deficit_covered':
      return [change(marketId, { covered: -paid })]
    case 'margin_adjusted':
    case 'leverage_adjusted':
    case 'claimed':
      return []
  }
}

const sumOf = (amounts: readonly bigint[]): bigint => amounts.reduce((total, each) => total + each, 0n)

const NONE = {
  ...{ inheritances: 0, inherited_steps: 0, failed_inheritances: 0, deleveragings: 0, deleveraged_steps: 0 },
  ...{ deleveraged_value: 0n, payouts: 0n, deficits: 0, deficit: 0n, covered: 0n },
}

const change = (market_id: number, changes: Partial<MarketRisk>): MarketRisk => ({
  ...NONE,
  ...changes,
  market_id,
})

const sum = (a: MarketRisk, b: MarketRisk): MarketRisk => ({
  market_id: a.market_id,
  inheritances: a.inheritances + b.inheritances,
  inherited_steps: a.inherited_steps + b.inherited_steps,
  failed_inheritances: a.failed_inheritances + b.failed_inheritances,
  deleveragings: a.deleveragings + b.deleveragings,
  deleveraged_steps: a.deleveraged_steps + b.deleveraged_steps,
  deleveraged_value: a.deleveraged_value + b.deleveraged_value,
  payouts: a.payouts + b.payouts,
  deficits: a.deficits + b.deficits,
  deficit: a.deficit + b.deficit,
  covered: a.covered + b.covered,
})
