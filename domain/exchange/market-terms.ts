/** Reads a market's specification, terms and funding from a state. */
import { fundingAfter } from '../actions/queue.ts'
import { type FeeSchedule, fromStoredFees } from '../market/fee-periods.ts'
import { type MarketTerms, type TermsInForce, termsAt } from '../market/in-force.ts'
import type { MarketSpec } from '../market/market.ts'
import { fromStoredSpec } from '../market/stored-spec.ts'
import { fromStoredTerms } from '../market/stored-terms.ts'
import { type FundingState, NO_FUNDING } from '../prices/funding-state.ts'
import type { FundingIndex, HourlyFunding, MarketId, Millis } from '../units.ts'
import { fundingStepOf, pendingActions } from './queued-actions.ts'
import type { ExchangeState } from './state.ts'
import { keyOfFunding } from './tables/chain.ts'
import type { MarketRow } from './tables/markets.ts'

interface ParsedMarket {
  readonly listed: MarketSpec
  readonly terms: Omit<MarketTerms, 'reservedFee'>
}

/** Parsed terms by row. Market rows are immutable, so an entry is valid for the lifetime of its row. */
const parsed = new WeakMap<MarketRow, ParsedMarket>()

function parse(row: MarketRow): ParsedMarket {
  const known = parsed.get(row)
  if (known !== undefined) return known
  const listed = fromStoredSpec(row.spec)
  const fees: FeeSchedule = fromStoredFees(row.fee_periods)
  const closing = { expiresAt: row.expires_at as Millis, settlingAt: row.settling_at as Millis }
  const market = {
    listed,
    terms: { mode: row.mode, chain: fromStoredTerms(row.terms, listed), closing, fees },
  }
  parsed.set(row, market)
  return market
}

/** Specification at the listing; undefined if the exchange has no such market. */
export function listedSpec(state: ExchangeState, marketId: MarketId): MarketSpec | undefined {
  const row = state.markets.get(String(marketId))
  return row && parse(row).listed
}

/** Terms of a listed market, with announced changes. */
export function marketTerms(state: ExchangeState, marketId: MarketId): MarketTerms {
  const { terms } = parse(state.markets.need(String(marketId)))
  return { ...terms, reservedFee: state.progress.need(marketId).reservedFee }
}

/** Terms in force of a listed market. */
export function marketTermsAt(state: ExchangeState, marketId: MarketId, asOf: Millis): TermsInForce {
  const { listed } = parse(state.markets.need(String(marketId)))
  return termsAt(listed, marketTerms(state, marketId), asOf)
}

/** Announced fee periods of a listed market. */
export const feeScheduleOf = (state: ExchangeState, marketId: MarketId): FeeSchedule =>
  parse(state.markets.need(String(marketId))).terms.fees

/** Funding after the last queued action. */
export function marketFunding(state: ExchangeState, marketId: MarketId): FundingState {
  const mined = minedFunding(state, marketId)
  const pending = pendingActions(state, marketId)
  return pending.length === 0 ? mined : fundingAfter(mined, pending.map(fundingStepOf))
}

/** Funding after the last mined action. */
export function minedFunding(state: ExchangeState, marketId: MarketId): FundingState {
  const actionId = state.lastFunding.get(marketId)?.at(-1)
  if (actionId === undefined) return NO_FUNDING
  const row = state.fundings.need(keyOfFunding({ market_id: marketId, action_id: actionId }))
  return {
    index: BigInt(row.funding_index) as FundingIndex,
    asOf: row.as_of as Millis,
    running: {
      rate: BigInt(row.rate) as HourlyFunding,
      validFrom: row.valid_from as Millis,
      validUntil: row.valid_until as Millis,
    },
  }
}
