/** Computes a market's mark with its averages, and finds the conditional orders that it triggers. */
import { type ActionLimits, batchBasis } from '../auction/action-basis.ts'
import type { MarketSnapshot } from '../auction/market-snapshot.ts'
import type { LiveBook } from '../book/live-book.ts'
import type { WaitingOrder } from '../book/trigger-book.ts'
import { reportRulesOf, type TermsInForce, termsAt } from '../market/in-force.ts'
import type { MarketSpec } from '../market/market.ts'
import type { Position } from '../positions/position.ts'
import type { OracleReport } from '../settlement/settlement.ts'
import type { Millis, UserId } from '../units.ts'
import type { PriceAverages } from './averages.ts'
import { hasFunding } from './funding.ts'
import { isInSession } from './funding-plan.ts'
import { fundingIndexAt } from './funding-state.ts'
import { bestPrices, markPrice, nextMarkBasis } from './mark.ts'
import type { MarketPrices } from './mark-plan.ts'
import { addPremium, isSampleDue, samplePremium } from './premium.ts'

/** Time between two checks for publication. */
export const PUBLISH_INTERVAL_MS = 1000
/** Interval at which unchanged prices are published again with a newer time. */
const REPUBLISH_MS = 5000

/** A market at the time of a mark. */
export interface MarkInput {
  readonly spec: MarketSpec
  readonly limits: ActionLimits
  /** Block time of the chain's head; null while no node responds. */
  readonly headTime: Millis | null
  readonly snapshot: MarketSnapshot
  readonly live: LiveBook
  /** Matched position of an account. */
  readonly positions: (account: UserId) => Position
}

export interface QuotedMark {
  readonly prices: MarketPrices
  readonly averages: PriceAverages
}

/** Mark at the report, and the averages after it. `before`: averages so far. */
export function quoteMark(input: MarkInput, oracle: OracleReport, before: PriceAverages): QuotedMark {
  const { spec, snapshot, live, positions } = input
  const { lastPrice, heldMark, funding, now } = snapshot
  const terms = termsAt(spec, snapshot.terms, now)
  const market = { spec: terms.reserving, oracle: oracle.price, now }
  const quotes = {
    ...market,
    book: live.book,
    positions,
    fundingIndex: fundingIndexAt(funding, now),
    excluded: snapshot.touched,
  }
  const priced = { ...market, best: bestPrices(quotes), last: lastPrice }
  const basis = nextMarkBasis(before.basis, priced)
  const isDue = hasFunding(terms.spec) && isSampleDue(before.premium, now)
  const sample = isDue && isSampled(input) ? samplePremium(quotes, snapshot.impactNotional) : null
  const premium = isDue ? addPremium(before.premium, sample, now) : before.premium
  return {
    prices: { oracle, mark: heldMark ?? markPrice(priced, basis), at: now },
    averages: { basis, premium },
  }
}

/**
 * Whether a premium can be sampled: a batch can run now, and funding accrues.
 * Otherwise quotes could not be filled, and would influence the rate at no cost.
 */
function isSampled({ spec, limits, snapshot, headTime }: MarkInput): boolean {
  const basis = batchBasis(spec, limits, snapshot, headTime)
  if (basis === null) return false
  const rules = reportRulesOf(basis.terms, limits.rules)
  return (
    !basis.terms.spec.fundingSession || (rules !== null && isInSession(snapshot.session, rules, snapshot.now))
  )
}

/** Orders whose trigger the mark has reached, with the terms of the next batch; null if no batch can run. */
export function reachedBy(
  { spec, limits, snapshot, headTime, live }: MarkInput,
  { mark }: MarketPrices,
): { readonly terms: TermsInForce; readonly orders: readonly WaitingOrder[] } | null {
  const basis = batchBasis(spec, limits, snapshot, headTime)
  return basis && { terms: basis.terms, orders: live.waiting.triggered(mark, spec.tick) }
}

/** Whether prices differ from the last published prices, or must be confirmed. */
export const hasChanged = (last: MarketPrices, { oracle, mark }: MarketPrices): boolean =>
  mark !== last.mark ||
  oracle.price !== last.oracle.price ||
  oracle.observedAt - last.oracle.observedAt >= REPUBLISH_MS
