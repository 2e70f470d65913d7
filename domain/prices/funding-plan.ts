/** Decides when a market's funding rate is due, and which rate the operator sets. */
import type { SessionReport, UpdateFunding } from '../actions/action.ts'
import { type MarketTerms, reportRulesOf, termsAt } from '../market/in-force.ts'
import type { MarketMode, MarketSpec } from '../market/market.ts'
import { ACTION_AHEAD } from '../settlement/durations.ts'
import type { OracleReport } from '../settlement/settlement.ts'
import { type HourlyFunding, type Millis, maxOf, minOf, ONE, type Price, type Rate } from '../units.ts'
import { type FundingRate, fundingBounds, hasFunding, MAX_VALIDITY, setFunding } from './funding.ts'
import { type FundingState, fundingIndexAt } from './funding-state.ts'
import { averagePremium, type PremiumAverage } from './premium.ts'
import { isReportUsable, type ReportRules, type UsedReport } from './report.ts'

/** Interval of updates: a quarter of the longest validity, so three updates in a row may be missed. */
export const UPDATE_INTERVAL = 900_000 as Millis
/** Pause after an update that the chain has not executed. */
export const RETRY_PAUSE = 30_000 as Millis

/** Hours over which the premium is paid. */
const PREMIUM_HOURS = 8n

// ---------------------------------------------------------------------- the rate

/**
 * An eighth of the premium per hour, in wei per step at the oracle price.
 * The rate is clamped to the contract's bounds: the market's cap, and the slope from the previous rate.
 */
export function proposedRate(
  spec: MarketSpec,
  running: FundingRate,
  premium: Rate,
  oracle: Price,
  asOf: Millis,
): HourlyFunding {
  const { lowest, highest } = fundingBounds(spec, running, oracle, asOf)
  const rate = ((premium * oracle * spec.step) / (PREMIUM_HOURS * ONE * ONE)) as HourlyFunding
  return maxOf(lowest, minOf(highest, rate))
}

// ---------------------------------------------------------------------- the time

/** Whether the report proves a session that runs at `asOf`, by the contract's rules. */
export const isInSession = (
  session: SessionReport | null,
  { maxAge }: Pick<ReportRules, 'maxAge'>,
  asOf: Millis,
): boolean =>
  session !== null &&
  session.endsAt > asOf &&
  asOf - session.observedAt <= maxAge &&
  session.observedAt - asOf <= ACTION_AHEAD

/**
 * First time at which a new rate is due: after the interval, and no later than the end of the running rate.
 */
export const nextUpdateAt = (running: FundingRate, interval: Millis = UPDATE_INTERVAL): Millis =>
  minOf((running.validFrom + interval) as Millis, running.validUntil)

/** The market's newest funding update, and its outcome. */
export interface LastUpdate {
  readonly asOf: Millis
  readonly outcome: 'pending' | 'mined' | 'dropped'
}

export interface FundingPlanInput {
  readonly spec: MarketSpec
  readonly rules: ReportRules
  /** Mode in force at `asOf`. */
  readonly mode: MarketMode
  /** Time of the next action. */
  readonly asOf: Millis
  /** Funding after the last queued action. */
  readonly funding: FundingState
  readonly usedReport: UsedReport | null
  readonly report: OracleReport | null
  /** The latest report of the session feed; null if there is none. */
  readonly session: SessionReport | null
  readonly premium: PremiumAverage
  /** Null before the first update. */
  readonly last: LastUpdate | null
  readonly interval: Millis
}

/** Whether the contract accepts an update in this mode. */
export const mayUpdateFunding = (mode: MarketMode): boolean => mode === 'open' || mode === 'cancel_only'

/**
 * True if the rate has ended, is older than the interval, or would outlast a session that now ends earlier
 * than at its setting.
 */
function isDue({ spec, asOf, funding: { running }, session, last, interval }: FundingPlanInput): boolean {
  if (last?.outcome === 'pending') return false
  if (last?.outcome === 'dropped' && asOf - last.asOf < RETRY_PAUSE) return false
  const isTooLong = spec.fundingSession && session !== null && session.endsAt < running.validUntil
  return isTooLong || asOf >= nextUpdateAt(running, interval)
}

/**
 * The funding update to queue at `asOf`; null if none is due or the contract would reject it, for example outside a
 * session, because every rate ends with its session.
 */
export function planFundingUpdate(input: FundingPlanInput): UpdateFunding | null {
  const { spec, rules, mode, asOf, report, session, usedReport, funding } = input
  if (!hasFunding(spec) || !mayUpdateFunding(mode) || report === null || !isDue(input)) return null
  if (!isReportUsable(report, usedReport, rules, asOf)) return null
  if (spec.fundingSession && !isInSession(session, rules, asOf)) return null
  const sessionEnd = spec.fundingSession ? (session as SessionReport).endsAt : null
  const latest = (asOf + MAX_VALIDITY) as Millis
  const validUntil = sessionEnd === null ? latest : minOf(latest, sessionEnd)
  const rate = proposedRate(spec, funding.running, averagePremium(input.premium, asOf), report.price, asOf)
  const index = fundingIndexAt(funding, asOf)
  const context = { running: funding.running, index, oracle: report.price, sessionEnd }
  if (!setFunding(spec, { asOf, rate, validUntil }, context).ok) return null
  return {
    ...{ kind: 'update_funding', asOf, rate, validUntil, report },
    session: spec.fundingSession ? session : null,
  }
}

// ---------------------------------------------------------------------- in force

/** Inputs of a market's next update. */
export interface FundingBasis extends Pick<FundingPlanInput, 'report' | 'session' | 'premium' | 'last'> {
  readonly terms: MarketTerms
}

/** End of the queue that the update follows. */
export type FundingTail = Pick<FundingPlanInput, 'asOf' | 'funding' | 'usedReport'>

/**
 * The update under the terms in force at its time. Null also while the report rules are unknown.
 * `fetched`: rules read from the contract, used while the terms have none.
 */
export function planFunding(
  listed: MarketSpec,
  { terms, report, session, premium, last }: FundingBasis,
  { asOf, funding, usedReport }: FundingTail,
  { fetched, interval }: { readonly fetched: ReportRules | null; readonly interval: Millis },
): UpdateFunding | null {
  const inForce = termsAt(listed, terms, asOf)
  const rules = reportRulesOf(inForce, fetched)
  if (rules === null) return null
  return planFundingUpdate({
    spec: inForce.spec,
    rules,
    mode: inForce.mode,
    asOf,
    funding,
    usedReport,
    report,
    session,
    premium,
    last,
    interval,
  })
}
