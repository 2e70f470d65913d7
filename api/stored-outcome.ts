/** Waits for an outcome that another process stores in the database, woken by its notifications. */
import type { Clock } from '../service/clock.ts'
import type { Notifications } from './ports.ts'

/** Calls `read` until it returns a value or the deadline has passed; then it returns null. */
export type OutcomeOf = <Value>(
  id: number | string,
  deadline: number,
  read: () => Promise<Value | null>,
) => Promise<Value | null>

/** The waits of an api process. */
export interface StoredOutcomes {
  /** `channel`: notified with the id of what has an outcome. */
  of(channel: string): OutcomeOf
  /** For a drain: every wait, running or later, ends at most `ms` and `LOST_MS` from now. */
  endWithin(ms: number): void
}

/** After this time without a notification it reads again, because notifications can be lost. */
const LOST_MS = 1_000

export function createStoredOutcomes(notifications: Notifications, clock: Clock): StoredOutcomes {
  let latest = Number.POSITIVE_INFINITY
  return {
    of: (channel) => outcomesOf(channel, notifications, clock, () => latest),
    endWithin(ms) {
      latest = clock.now() + ms
    },
  }
}

function outcomesOf(
  channel: string,
  notifications: Notifications,
  clock: Clock,
  latest: () => number,
): OutcomeOf {
  const waiting = new Map<string, Set<() => void>>()
  const wake = (id: string): void => {
    for (const resume of waiting.get(id) ?? []) resume()
  }
  notifications.on(channel, wake)
  notifications.onLost(() => [...waiting.keys()].forEach(wake))

  /** Resolves with a notification of this id from now on, or after `ms`. */
  function next(id: string, ms: number): { readonly woken: Promise<void>; readonly cancel: () => void } {
    let cancel = (): void => {}
    const woken = new Promise<void>((resolve) => {
      const own = waiting.get(id) ?? new Set()
      const timer = setTimeout(() => cancel(), ms)
      cancel = () => {
        clearTimeout(timer)
        own.delete(cancel)
        if (own.size === 0 && waiting.get(id) === own) waiting.delete(id)
        resolve()
      }
      waiting.set(id, own.add(cancel))
    })
    return { woken, cancel }
  }

  return async (id, deadline, read) => {
    for (;;) {
      const left = Math.min(deadline, latest()) - clock.now()
      // Listens before it reads, so that no notification is missed in between.
      const { woken, cancel } = next(String(id), Math.max(0, Math.min(left, LOST_MS)))
      try {
        const value = await read()
        if (value !== null || left <= 0) return value
        await woken
      } finally {
        cancel()
      }
    }
  }
}
