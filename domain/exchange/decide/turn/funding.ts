/** Queues a market's funding update when one is due. */
import type { QueueRefusal } from '../../../actions/queue.ts'
import { type LastUpdate, planFunding } from '../../../prices/funding-plan.ts'
import type { MarketId, Millis } from '../../../units.ts'
import { accept, type Verdict } from '../../../verdict.ts'
import type { Decider } from '../../decide.ts'
import type { ExchangeState } from '../../state.ts'
import type { ActionState } from '../../tables/markets.ts'
import { TurnContext } from './context.ts'
import { storedAverages } from './mark.ts'
import { enqueueAction } from './queue.ts'

export interface FundingCommand {
  readonly marketId: MarketId
  /** Time between two updates of a market. */
  readonly interval: Millis
  /** True if the bank is paused now: the chain would reject the update. */
  readonly isBankPaused: boolean
}

/** Number of the queued action; null if no update is due. */
export type FundingAnswer = Verdict<number | null, QueueRefusal>

export const fundingUpdate: Decider<FundingCommand, FundingAnswer> = (draft, inputs, command) => {
  const { marketId, interval, isBankPaused } = command
  if (isBankPaused) return accept(null)
  const context = new TurnContext(draft, inputs, marketId)
  const { state, snapshot, listed } = context
  const fetched = inputs.reportRules(marketId)
  const { premium } = storedAverages(state, marketId)
  const basis = { ...snapshot, premium, last: lastUpdate(state, marketId) }
  return enqueueAction(context, (asOf) =>
    planFunding(listed, basis, { ...snapshot, asOf }, { fetched, interval }),
  )
}

function lastUpdate(state: ExchangeState, marketId: MarketId): LastUpdate | null {
  const action = state.marketIndexes.lastFundingUpdate(marketId)
  return action === undefined ? null : { asOf: action.as_of as Millis, outcome: OUTCOMES[action.status] }
}

const OUTCOMES: Readonly<Record<ActionState, LastUpdate['outcome']>> = {
  QUEUED: 'pending',
  SIGNED: 'pending',
  SUBMITTED: 'pending',
  MINED: 'mined',
  REVERTED: 'dropped',
  VOIDED: 'dropped',
}
