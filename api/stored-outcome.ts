/** Waits for an outcome that another process stores in the database, woken by its notifications. */
import type { Clock } from '../service/clock.ts'
import type { Notifications } from './ports.ts'

/** Calls `read` until it returns a value or the deadline has passed; then it returns null. */
export type OutcomeOf = <Value>(
  id: number | string,
  deadline: number,
  read: () => Promise<Value | null>,
) => Promise<Value | null>

/** After this time without a notification it reads again, because notifications can be lost. */
const LOST_MS = 1_000

/** `channel`: notified with the id of what has an outcome. */
export function createOutcomes(notifications: Notifications, channel: string, clock: Clock): OutcomeOf {
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
      const left = deadline - clock.now()
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
