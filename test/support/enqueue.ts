/** Queues an action in a market without a command that asks for it, such as one that the contract rejects. */
import type { SingleAction } from '../../domain/actions/action.ts'
import type { QueueRefusal } from '../../domain/actions/queue.ts'
import { TurnContext } from '../../domain/exchange/decide/turn/context.ts'
import { enqueueAction } from '../../domain/exchange/decide/turn/queue.ts'
import type { Draft } from '../../domain/exchange/draft.ts'
import type { Inputs } from '../../domain/exchange/inputs.ts'
import type { ExchangeState } from '../../domain/exchange/state.ts'
import type { FundingState } from '../../domain/prices/funding-state.ts'
import type { UsedReport } from '../../domain/prices/report.ts'
import type { MarketId, Millis } from '../../domain/units.ts'
import type { Verdict } from '../../domain/verdict.ts'

/** The end of a market's queue, behind which the next action comes. */
export interface QueueEnd {
  /** The time of the next action. */
  readonly asOf: Millis
  readonly usedReport: UsedReport | null
  /** After the last queued action. */
  readonly funding: FundingState
}

/** Null: no action. `state`: that of the decision. */
export type BuildAction = (end: QueueEnd, state: ExchangeState) => SingleAction | null

/** The action's number; null if `build` returns null, or if no action can be mined now. */
export function enqueueOn(
  draft: Draft,
  inputs: Inputs,
  marketId: MarketId,
  build: BuildAction,
): Verdict<number | null, QueueRefusal> {
  const context = new TurnContext(draft, inputs, marketId)
  const { usedReport, funding } = context.snapshot
  return enqueueAction(context, (asOf) => build({ asOf, usedReport, funding }, draft.state))
}
