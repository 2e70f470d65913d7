/** Counts requests in this process. */
import type { Clock } from '../../service/clock.ts'
import type { CountedRequests } from '../ports.ts'

/** Maximum keys; above it the oldest windows are evicted. */
const MAX_KEYS = 100_000

type CountLocally = (key: string, windowMs: number, cost?: number, most?: number) => CountedRequests

export interface LocalCounter {
  readonly count: CountLocally
  /** Reads the count without adding a request. */
  readonly read: CountLocally
}

export function createLocalCounter(clock: Clock): LocalCounter {
  const windows = new Map<string, { count: number; readonly ends: number }>()
  const openWindow = (key: string, now: number) => {
    const window = windows.get(key)
    return window !== undefined && window.ends > now ? window : undefined
  }
  return {
    count(key, windowMs, cost = 1, most = Number.POSITIVE_INFINITY) {
      const now = clock.now()
      let window = openWindow(key, now)
      const current = (window?.count ?? 0) + cost
      if (current > most) return { current, ttl: window === undefined ? windowMs : window.ends - now }
      if (window === undefined) {
        window = { count: 0, ends: now + windowMs }
        windows.delete(key)
        windows.set(key, window)
      }
      window.count += cost
      if (windows.size > MAX_KEYS) windows.delete(windows.keys().next().value as string)
      return { current: window.count, ttl: window.ends - now }
    },
    read(key, windowMs) {
      const now = clock.now()
      const window = openWindow(key, now)
      return window === undefined
        ? { current: 0, ttl: windowMs }
        : { current: window.count, ttl: window.ends - now }
    },
  }
}
