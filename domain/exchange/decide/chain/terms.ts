/** Decides facts about a market's terms, close, backstop and final price. */
import type {
  BackstopChangedFact,
  EndingChangedFact,
  HaircutFixedFact,
  LoggedFact,
  TermsChangedFact,
} from '../../../chain/facts.ts'
import { termsEventOf } from '../../../chain/terms-event.ts'
import type { EndingChanged, EndingTimes } from '../../../journal/action-rows.ts'
import { afterEvent } from '../../../market/changes.ts'
import { fromStoredTerms, toStoredTerms } from '../../../market/stored-terms.ts'
import type { MarketId } from '../../../units.ts'
import type { ExchangeState } from '../../state.ts'
import type { MarketRow } from '../../tables/markets.ts'
import { blockTime, type FactContext, minedAt } from './fact-context.ts'

type Log = LoggedFact['log']

const marketOf = (state: ExchangeState, marketId: MarketId): MarketRow => state.markets.need(String(marketId))

export const isBackstopChange = (fact: BackstopChangedFact | TermsChangedFact): fact is BackstopChangedFact =>
  fact.event.kind === 'backstop_changed'

/** Null if nothing changes: a mode other than settling was scheduled while no close was set. */
function endingRow(
  context: FactContext,
  marketId: MarketId,
  times: Partial<EndingTimes>,
  log: Log,
): EndingChanged | null {
  const { expires_at, settling_at, dispute_window } = marketOf(context.draft.state, marketId)
  const before = { expires_at, settling_at, dispute_window }
  const after = { ...before, ...times }
  const isSame =
    after.expires_at === expires_at &&
    after.settling_at === settling_at &&
    after.dispute_window === dispute_window
  if (isSame) return null
  return { kind: 'ending_changed', rollback: false, ...after, before, ...minedAt(context, log) }
}

export function changeEnding(context: FactContext, fact: EndingChangedFact, log: Log): void {
  const { marketId } = fact.spec
  if (fact.report !== undefined) {
    reportFinalPrice(context, marketId, fact.report, log)
    return
  }
  const row = endingRow(context, marketId, fact.times, log)
  if (row !== null) context.draft.write(marketId, row)
}

/** The dispute window starts with the block of the first report. */
function reportFinalPrice(
  context: FactContext,
  marketId: MarketId,
  { price, observedAt }: NonNullable<EndingChangedFact['report']>,
  log: Log,
): void {
  const before = marketOf(context.draft.state, marketId).final_report
  const mined = minedAt(context, log)
  const reported_at = before?.reported_at ?? mined.at
  const report = { price: price.toString(), observed_at: observedAt, reported_at }
  context.draft.write(marketId, { kind: 'final_price_reported', rollback: false, report, before, ...mined })
}

export function fixHaircut(context: FactContext, { spec, haircut }: HaircutFixedFact, log: Log): void {
  context.draft.write(spec.marketId, {
    kind: 'haircut_fixed',
    rollback: false,
    pool: haircut.pool.toString(),
    owed: haircut.owed.toString(),
    ...minedAt(context, log),
  })
}

export function changeBackstop(context: FactContext, fact: BackstopChangedFact, log: Log): void {
  const { marketId } = fact.spec
  const { backstop, backstop_cap } = marketOf(context.draft.state, marketId)
  context.draft.write(marketId, {
    kind: 'backstop_changed',
    rollback: false,
    backstop: fact.event.backstop,
    backstop_cap: fact.event.cap.toString(),
    before: { backstop, backstop_cap },
    ...minedAt(context, log),
  })
}

/**
 * Changes the market's terms. The row of the deployment's parameters is never rolled back, because they hold
 * for as long as the contract exists.
 */
export function changeTerms(context: FactContext, fact: TermsChangedFact, log: Log): void {
  const { draft, facts } = context
  const { spec, event } = fact
  const { marketId } = spec
  const before = marketOf(draft.state, marketId).terms
  const known = termsEventOf(event, { log, facts, blockTime: blockTime(context) })
  const terms = toStoredTerms(afterEvent(fromStoredTerms(before, spec), known))
  if (event.kind === 'changes_applied' && event.actionId === 0) {
    draft.write(marketId, { kind: 'terms_stated', terms })
    return
  }
  const ending = fact.times === null ? null : endingRow(context, marketId, fact.times, log)
  if (ending !== null) draft.write(marketId, ending)
  draft.write(marketId, {
    kind: 'terms_changed',
    rollback: false,
    cause: event.kind,
    terms,
    before,
    ending,
    ...minedAt(context, log),
  })
}
