/** Waits for the end of adjustment attempts, by notification. */
import { ADJUSTMENT_ENDS_CHANNEL, type AttemptRow, loadAttempt } from '../../db/adjustments.ts'
import type { Db } from '../../db/client.ts'
import { isInFlight } from '../../domain/positions/adjustment-attempt.ts'
import type { Clock } from '../../service/clock.ts'
import type { StoredOutcomes } from '../stored-outcome.ts'

/** The attempt once it has ended, or as it is after the wait. */
export type AwaitEnd = (attempt: AttemptRow, waitMs: number) => Promise<AttemptRow>

export function createAttemptEnds(db: Db, clock: Clock, outcomes: StoredOutcomes): AwaitEnd {
  const outcomeOf = outcomes.of(ADJUSTMENT_ENDS_CHANNEL)
  return async (attempt, waitMs) => {
    let current = attempt
    const ended = async (): Promise<AttemptRow | null> => {
      current = (await loadAttempt(db, attempt.adjustment_id)) ?? current
      return isInFlight(current.status) ? null : current
    }
    if (isInFlight(attempt.status)) await outcomeOf(attempt.adjustment_id, clock.now() + waitMs, ended)
    return current
  }
}
