/** The time by which the owner decides: monotonic, and never before a row of the journal. */
import type { Millis } from '../../domain/units.ts'
import type { EngineClock } from './ports.ts'

/**
 * Largest difference between the database's clock and its continuation by the monotonic clock; beyond it one has
 * stepped, and the owner ends. The monotonic clock counts the lease.
 */
export const MAX_JUMP_MS = 1000

export interface TimeGuard {
  /** The later of the clock and `latestRow`; null if a clock has jumped. */
  now(latestRow: Millis): Millis | null
}

export function createTimeGuard(clock: EngineClock): TimeGuard {
  /** Database time minus monotonic time. Slow drift is followed, so that it never adds up to a jump. */
  let offset = clock.now() - clock.monotonic()

  return {
    now(latestRow) {
      const now = clock.now()
      const next = now - clock.monotonic()
      if (Math.abs(next - offset) > MAX_JUMP_MS) return null
      offset = next
      return Math.max(now, latestRow) as Millis
    },
  }
}
