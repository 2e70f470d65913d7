/** Completes an event about a market's terms with data from other facts of its block. */
import type { TermsEvent } from '../market/changes.ts'
import type { Millis } from '../units.ts'
import type { LoggedFact, TermsChangedFact } from './facts.ts'
import { minedActionOf } from './single-action.ts'

/** `log`: log of the market contract's event. `facts`: all facts of its block. */
export interface BlockOfFact {
  readonly log: LoggedFact['log']
  readonly facts: readonly LoggedFact[]
  readonly blockTime: Millis
}

export const termsEventOf = (event: TermsChangedFact['event'], block: BlockOfFact): TermsEvent =>
  event.kind === 'changes_applied' ? { ...event, asOf: storedAsOf(event.actionId, block) } : event

/**
 * Time at which the contract stored due changes.
 * An action emits its own event after them in the same transaction; an announcement stores them at block time.
 */
function storedAsOf(actionId: number, { log, facts, blockTime }: BlockOfFact): Millis {
  const action = facts
    .filter((other) => other.log.txHash === log.txHash && other.log.address === log.address)
    .map((other) => minedActionOf(other.fact))
    .find((mined) => mined?.actionId === actionId)
  return action?.asOf ?? blockTime
}
