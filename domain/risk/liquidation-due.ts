/** Accounts of a market that must be liquidated now, and the prices of this decision. */
import type { BatchBasis } from '../auction/action-basis.ts'
import type { MarketSnapshot } from '../auction/market-snapshot.ts'
import { termsAt } from '../market/in-force.ts'
import type { MarketSpec } from '../market/market.ts'
import type { Position } from '../positions/position.ts'
import { fundingIndexAt } from '../prices/funding-state.ts'
import type { Millis, UserId } from '../units.ts'
import { graceEndsAt } from './bank-pause.ts'
import { isOver } from './ending.ts'
import type { PositionScanner } from './scanner.ts'
import type { RiskPrices } from './score-bounds.ts'

/** The matched positions of a market. */
export interface ScannedPositions {
  readonly scanner: PositionScanner
  readonly of: (account: UserId) => Position
}

interface DueTerms {
  readonly prices: RiskPrices
  readonly snapshot: Pick<MarketSnapshot, 'pauseEndsAt' | 'touched'>
  readonly asOf: Millis
}

export const riskPricesOf = (
  { terms, asOf, report }: BatchBasis,
  { funding }: Pick<MarketSnapshot, 'funding'>,
): RiskPrices => ({
  spec: terms.spec,
  index: fundingIndexAt(funding, asOf),
  oracle: report.price,
})

/** Whether the market's positions are settled at the final price. */
export const isClosedMarket = (spec: MarketSpec, { terms, now }: MarketSnapshot): boolean =>
  isOver(termsAt(spec, terms, now).mode)

/**
 * Accounts below the threshold, farthest below it first, without accounts in a grace or touched by a queued action.
 */
export function* dueAccounts(
  { scanner, of }: ScannedPositions,
  { prices, snapshot, asOf }: DueTerms,
): Generator<UserId> {
  const isGrace = asOf < graceEndsAt(snapshot.pauseEndsAt)
  const accounts = isGrace ? scanner.withoutEquity(prices, of) : scanner.liquidatable(prices, of)
  for (const account of accounts) if (!snapshot.touched.has(account)) yield account
}
