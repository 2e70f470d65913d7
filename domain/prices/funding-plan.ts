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

/** Time between two updates: a quarter of the longest validity, so that three of them may be missed. */
export const UPDATE_INTERVAL = 900_000 as Millis
/** Pause after an update that the chain has not executed. */
export const RETRY_PAUSE = 30_000 as Millis

/** The premium is paid over eight hours. */
const PREMIUM_HOURS = 8n

// ---------------------------------------------------------------------- the rate

/**
 * An eighth of the premium per hour, in wei per step at the oracle price, within the bounds of the contract:
 * the market's cap, and the slope from the rate before.
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

/** The first time at which a new rate is due: at the interval, and no later than the end of the running one. */
export const nextUpdateAt = (running: FundingRate, interval: Millis = UPDATE_INTERVAL): Millis =>
  minOf((running.validFrom + interval) as Millis, running.validUntil)

/** The market's newest funding update, and what has become of it. */
export interface LastUpdate {
  readonly asOf: Millis
  readonly outcome: 'pending' | 'mined' | 'dropped'
}

export interface FundingPlanInput {
  readonly spec: MarketSpec
  readonly rules: ReportRules
  /** At `asOf`. */
  readonly mode: MarketMode
  /** The time of the next action. */
  readonly asOf: Millis
  /** After the last queued action. */
  readonly funding: FundingState
  readonly usedReport: UsedReport | null
  readonly report: OracleReport | null
  /** The latest report of the session feed; null if there is none. */
  readonly session: SessionReport | null
  readonly premium: PremiumAverage
  /** Null before the first one. */
  readonly last: LastUpdate | null
  readonly interval: Millis
}

/** In the other modes the contract rejects an update. */
export const mayUpdateFunding = (mode: MarketMode): boolean => mode === 'open' || mode === 'cancel_only'

/**
 * True if the rate ends, or is older than the interval, or would outlast a session that ends earlier than it
 * did when the rate was set.
 */
function isDue({ spec, asOf, funding: { running }, session, last, interval }: FundingPlanInput): boolean {
  if (last?.outcome === 'pending') return false
  if (last?.outcome === 'dropped' && asOf - last.asOf < RETRY_PAUSE) return false
  const isTooLong = spec.fundingSession && session !== null && session.endsAt < running.validUntil
  return isTooLong || asOf >= nextUpdateAt(running, interval)
}

/**
 * The funding update to queue as of `asOf`; null if none is due, or if the contract would not accept one:
 * outside a session, without a usable report, or in another mode. Outside a session the rate has ended by
 * itself, because none is valid beyond the session's end.
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

/** The end of a market's queue, behind which the update comes. */
export type FundingTail = Pick<FundingPlanInput, 'asOf' | 'funding' | 'usedReport'>

/**
 * The update by the terms in force as of its time. Null also while the rules for reports are not known. `fetched`: the contract's, as long as
 * the terms do not have them.
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
