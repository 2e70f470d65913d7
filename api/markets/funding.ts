/** The funding of a market, as the answers on markets show it. */
import Type from 'typebox'
import { type StoredFunding, toFunding } from '../../db/funding.ts'
import { type StoredAverages, toAverages } from '../../db/price-averages.ts'
import type { MarketMode, MarketSpec } from '../../domain/market/market.ts'
import { sessionAt, type TradingCalendar } from '../../domain/market/trading-calendar.ts'
import { type FundingRate, fractionOf, hasFunding } from '../../domain/prices/funding.ts'
import { mayUpdateFunding, nextUpdateAt, proposedRate } from '../../domain/prices/funding-plan.ts'
import { averagePremium, impactNotional } from '../../domain/prices/premium.ts'
import { type HourlyFunding, type Millis, maxOf, type Price, type Quote } from '../../domain/units.ts'
import { amount, maybeAmount, maybeTime } from '../wire/amounts.ts'
import { amountOf, maybeAmountOf, nullable, nullableObject, Time } from '../wire/schema.ts'

export const fundingFields = {
  funding: nullableObject(
    Type.Object({
      ...maybeAmountOf(
        'funding_rate',
        'The rate in force: the fraction of the oracle price that longs pay per hour, negative if shorts pay. Null while no rate is valid: ' +
          'then no funding accrues.',
      ),
      ...maybeAmountOf(
        'rate_per_step',
        'The rate in force: USDM that a long pays per quantity step and hour, exact.',
      ),
      effective_at: nullable(Time('Time from which the rate in force applies.')),
      valid_until: nullable(
        Time('Time at which it ends, unless a later update replaces it before; exclusive.'),
      ),
      ...maybeAmountOf(
        'predicted_rate',
        'The rate that the next update sets if the average premium stays as it is; null before the first oracle price, and while the mode allows no update.',
      ),
      ...amountOf(
        'premium_average',
        'Time-weighted average premium of the last hour, a fraction of the oracle price.',
      ),
      next_update_at: nullable(
        Time(
          'Time from which the next update is due; null if it is due already, if that time is not known, or while the mode (halted, settling, settled) allows none.',
        ),
      ),
      ...maybeAmountOf(
        'impact_notional',
        'The notional of the market orders whose average prices measure the premium, in USDM; null before the first oracle price.',
      ),
      ...amountOf('funding_cap', 'Largest absolute rate, a fraction of the oracle price per hour.'),
    }),
    'Funding of a perpetual; null for a market without funding.',
  ),
}

export interface FundingColumns {
  readonly funding: StoredFunding
  readonly averages: StoredAverages
  readonly oracle_price: bigint | null
  readonly impact_notional: bigint | null
}

/** When the next update is due: with the opening while the session is closed. Null if it is due now. */
function nextUpdate(running: FundingRate, calendar: TradingCalendar | null, now: Millis): Millis | null {
  if (calendar !== null) {
    const { isOpen, nextChangeAt } = sessionAt(calendar, now)
    if (!isOpen) return nextChangeAt
  }
  const due = nextUpdateAt(running)
  return due > now ? due : null
}

/** `calendar` is null if the underlying trades around the clock. */
export function fundingView(
  spec: MarketSpec,
  state: FundingColumns,
  calendar: TradingCalendar | null,
  { mode, now }: { readonly mode: MarketMode; readonly now: Millis },
) {
  if (!hasFunding(spec)) return { funding: null }
  const { running } = toFunding(state.funding)
  const isValid = now < running.validUntil
  const oracle = state.oracle_price as Price | null
  const premium = averagePremium(toAverages(state.averages).premium, now)
  const isUpdated = mayUpdateFunding(mode)
  const next = isUpdated ? nextUpdate(running, spec.fundingSession ? calendar : null, now) : null
  const fraction = (rate: HourlyFunding) => (oracle === null ? null : fractionOf(spec, rate, oracle))
  const impact = oracle === null ? null : impactNotional(spec, oracle, state.impact_notional as Quote | null)
  const predicted =
    oracle === null || !isUpdated
      ? null
      : proposedRate(spec, running, premium, oracle, maxOf(next ?? now, running.validFrom))
  return {
    funding: {
      ...maybeAmount('funding_rate', isValid ? fraction(running.rate) : null),
      ...maybeAmount('rate_per_step', isValid ? running.rate : null),
      effective_at: maybeTime(isValid ? running.validFrom : null),
      valid_until: maybeTime(isValid ? running.validUntil : null),
      ...maybeAmount('predicted_rate', predicted === null ? null : fraction(predicted)),
      ...amount('premium_average', premium),
      next_update_at: maybeTime(next),
      ...maybeAmount('impact_notional', impact),
      ...amount('funding_cap', spec.fundingCap),
    },
  }
}
