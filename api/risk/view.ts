/** Converts the risk of a market to its JSON form. */
import { toFunding } from '../../db/funding.ts'
import { type MarketSpec, quantityOf } from '../../domain/market/market.ts'
import { exposureOf, ratioOf } from '../../domain/positions/margin.ts'
import { marginOf, type Position } from '../../domain/positions/position.ts'
import { fundingIndexAt } from '../../domain/prices/funding-state.ts'
import { graceEndsAt } from '../../domain/risk/bank-pause.ts'
import {
  divCeil,
  type Millis,
  maxOf,
  mulDivUp,
  ONE,
  type Price,
  type Quote,
  type Seconds,
  type Steps,
} from '../../domain/units.ts'
import { amount, isoTime, maybeAmount } from '../wire/amounts.ts'
import type { RiskRow } from './query.ts'
import type { MarketRisk } from './schema.ts'

const quantity = (spec: MarketSpec, steps: number): bigint => quantityOf(spec, steps as Steps)

function backstopView(spec: MarketSpec, row: RiskRow, now: Millis): MarketRisk['backstop'] {
  if (row.backstop === null) return null
  const position: Position = {
    ...{ size: row.size as Steps, entryNotional: row.entry_notional as Quote },
    ...{ foldedMargin: row.folded_margin as Quote, leverage: row.leverage },
  }
  const index = fundingIndexAt(toFunding(row.funding), now)
  const oracle = row.oracle_price as Price | null
  const exposure = oracle === null ? null : exposureOf(spec, position, index, oracle)
  // Rounded up, as the contract compares it with the capacity.
  const used = exposure === null ? null : divCeil(exposure.notional, ONE)
  return {
    ...amount('capacity', row.backstop_cap),
    ...maybeAmount('used', used),
    ...maybeAmount('available', used === null ? null : maxOf(row.backstop_cap - used, 0n)),
    ...amount('size', quantity(spec, row.size)),
    ...amount('margin', marginOf(position, index)),
    ...maybeAmount('margin_ratio', exposure === null ? null : ratioOf(exposure)),
    ...amount('free_balance', row.free),
  }
}

/** The end of the grace after the bank's last pause; null if it is over. */
function pausedUntil(pauseEndsAt: number, now: Millis): string | null {
  if (pauseEndsAt === 0) return null
  const end = graceEndsAt(pauseEndsAt as Seconds)
  return end > now ? isoTime(end) : null
}

export function riskView(spec: MarketSpec, row: RiskRow, now: Millis): MarketRisk {
  const open = quantity(spec, row.open_steps)
  const oracle = row.oracle_price
  return {
    market_id: spec.marketId,
    symbol: spec.symbol,
    ...maybeAmount('oracle_price', oracle),
    ...amount('open_interest', open),
    ...maybeAmount('open_interest_notional', oracle === null ? null : mulDivUp(open, oracle, ONE)),
    backstop: backstopView(spec, row, now),
    inheritances: {
      ...{ count: row.inheritances, failed: row.failed_inheritances },
      ...amount('quantity', quantity(spec, row.inherited_steps)),
    },
    deleveragings: {
      count: row.deleveragings,
      ...amount('quantity', quantity(spec, row.deleveraged_steps)),
      ...amount('notional', row.deleveraged_value),
      ...amount('payouts', row.payouts),
    },
    deficits: {
      count: row.deficits,
      ...amount('reported', row.deficit),
      ...amount('covered', row.covered),
    },
    running_liquidations: row.running,
    liquidation_paused_until: pausedUntil(row.pause_ends_at, now),
  }
}
