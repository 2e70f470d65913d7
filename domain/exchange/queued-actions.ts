/** A market's actions that are neither mined nor ended, and their effects on funding. */
import type { SingleAction, SingleKind } from '../actions/action.ts'
import type { FundingStep } from '../actions/queue.ts'
import { fromStoredPayload } from '../actions/stored-action.ts'
import { invariant } from '../invariant.ts'
import type { HourlyFunding, MarketId, Millis } from '../units.ts'
import type { ExchangeState } from './state.ts'
import { type ActionRow, actionKey } from './tables/markets.ts'

/** Pending actions, in queue order. */
export const pendingActions = (state: ExchangeState, marketId: MarketId): ActionRow[] =>
  state.queues.pending(marketId).map((queueNo) => state.actions.need(actionKey(marketId, queueNo)))

export function singleActionOf({ kind, as_of, payload }: ActionRow): SingleAction {
  invariant(payload !== null, 'a single action has a payload')
  return fromStoredPayload(kind as SingleKind, as_of as Millis, payload)
}

/** Funding step of an action: its time, and the rate that it sets. */
export function fundingStepOf({ as_of, payload }: ActionRow): FundingStep {
  const asOf = as_of as Millis
  if (payload === null || !('rate' in payload)) return { asOf, sets: null }
  const sets = {
    rate: BigInt(payload.rate) as HourlyFunding,
    validUntil: payload.valid_until as Millis,
  }
  return { asOf, sets }
}
