/** Counts requests in this process. */
import type { Clock } from '../../service/clock.ts'
import type { CountRequest } from '../ports.ts'

/** Keys at once; beyond it the oldest windows are evicted first. */
const MAX_KEYS = 100_000

export interface Counter {
  readonly count: CountRequest
  /** Without counting a request. */
  readonly read: CountRequest
}

export function createLocalCounter(clock: Clock): Counter {
  const windows = new Map<string, { count: number; readonly ends: number }>()
  const openWindow = (key: string) => {
    const window = windows.get(key)
    return window !== undefined && window.ends > clock.now() ? window : undefined
  }
  return {
    async count(key, windowMs) {
      const now = clock.now()
      let window = openWindow(key)
      if (window === undefined) {
        window = { count: 0, ends: now + windowMs }
        windows.delete(key)
        windows.set(key, window)
      }
      window.count++
      if (windows.size > MAX_KEYS) windows.delete(windows.keys().next().value as string)
      return { current: window.count, ttl: window.ends - now }
    },
    async read(key, windowMs) {
      const window = openWindow(key)
      return window === undefined
        ? { current: 0, ttl: windowMs }
        : { current: window.count, ttl: window.ends - clock.now() }
    },
  }
}
