/** The timers of the process. */
import type { Timer } from './ports.ts'

export const systemTimer: Timer = {
  after(ms, work) {
    const timer = setTimeout(work, ms)
    return () => clearTimeout(timer)
  },
  soon(work) {
    setImmediate(work)
  },
}
