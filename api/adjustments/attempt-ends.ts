/** Waits for the end of adjustment attempts, by notification. */
import { ADJUSTMENT_ENDS_CHANNEL, type AttemptRow, loadAttempt } from '../../db/adjustments.ts'
import type { Db } from '../../db/client.ts'
import { isInFlight } from '../../domain/positions/adjustment-attempt.ts'
import { type Clock, elapsed } from '../../service/clock.ts'
import type { Notifications } from '../ports.ts'

/** The attempt once it has ended, or as it is after the wait. */
export type AwaitEnd = (attempt: AttemptRow, waitMs: number) => Promise<AttemptRow>

/** A notification can be lost while the connection is made again. */
const READ_AGAIN_MS = 1_000

export function createAttemptEnds(db: Db, clock: Clock, notifications: Notifications): AwaitEnd {
  const waiting = new Map<string, Set<() => void>>()
  notifications.on(ADJUSTMENT_ENDS_CHANNEL, (id) => {
    for (const wake of waiting.get(id) ?? []) wake()
  })

  /** Resolves at the notification, or after the time. */
  const notified = (id: string, ms: number): Promise<void> =>
    new Promise((resolve) => {
      const wakers = waiting.get(id) ?? new Set()
      waiting.set(id, wakers)
      const wake = (): void => {
        clearTimeout(timer)
        wakers.delete(wake)
        if (wakers.size === 0) waiting.delete(id)
        resolve()
      }
      const timer = setTimeout(wake, ms)
      wakers.add(wake)
    })

  return async (attempt, waitMs) => {
    const started = clock.now()
    for (let current = attempt; ; ) {
      const left = waitMs - elapsed(clock, started)
      if (!isInFlight(current.status) || left <= 0) return current
      // Registered before the read: an end between the two is not missed.
      const wake = notified(attempt.adjustment_id, Math.min(left, READ_AGAIN_MS))
      current = (await loadAttempt(db, attempt.adjustment_id)) ?? current
      if (!isInFlight(current.status)) return current
      await wake
      current = (await loadAttempt(db, attempt.adjustment_id)) ?? current
    }
  }
}
