/**
 * Ends a closed market: returns the report to submit, and queues the finalization after the dispute window.
 */
import type { QueueRefusal } from '../../../actions/queue.ts'
import { type EndingStep, planEnding } from '../../../risk/ending-plan.ts'
import { toEnding } from '../../../risk/stored-ending.ts'
import type { OracleReport } from '../../../settlement/settlement.ts'
import type { MarketId } from '../../../units.ts'
import { accept, refuse, type Verdict } from '../../../verdict.ts'
import type { Decider } from '../../decide.ts'
import type { Inputs } from '../../inputs.ts'
import { pendingActions } from '../../queued-actions.ts'
import type { ExchangeState } from '../../state.ts'
import { TurnContext } from './context.ts'
import { enqueueAction } from './queue.ts'
import { specOf } from './snapshot.ts'

/**
 * `report`: report of the feed that ends the market; null if there is none. The result is null while no node responds.
 */
export function endingStepOf(
  state: ExchangeState,
  { headTime }: Pick<Inputs, 'headTime'>,
  marketId: MarketId,
  report: OracleReport | null,
): EndingStep | null {
  const market = state.markets.need(String(marketId))
  if (headTime === null || market.ended !== null) return null
  return planEnding(specOf(state, marketId), toEnding(market), report, headTime)
}

export interface FinalizeCommand {
  readonly marketId: MarketId
  /** Report in force on chain, with its signatures. */
  readonly report: OracleReport
}

export type FinalizeRefusal =
  /** The dispute window is not over, or the market has ended. */
  | { readonly code: 'NOT_FINALIZABLE' }
  /** Another report is in force. */
  | { readonly code: 'REPORT_SUPERSEDED' }
  | QueueRefusal

/** Number of the queued action; null if a finalization is already queued, or no action can be mined now. */
export const finalizeMarket: Decider<FinalizeCommand, Verdict<number | null, FinalizeRefusal>> = (
  draft,
  inputs,
  { marketId, report },
) => {
  const { state } = draft
  const step = endingStepOf(state, inputs, marketId, null)
  if (step?.kind !== 'finalize') return refuse({ code: 'NOT_FINALIZABLE' })
  if (step.report.price !== report.price || step.report.observedAt !== report.observedAt)
    return refuse({ code: 'REPORT_SUPERSEDED' })
  if (pendingActions(state, marketId).some(({ kind }) => kind === 'finalize_market')) return accept(null)
  return enqueueAction(new TurnContext(draft, inputs, marketId), (asOf) => ({
    kind: 'finalize_market',
    asOf,
    report,
  }))
}
