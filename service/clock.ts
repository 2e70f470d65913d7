/** A clock as a port, so that tests can set the time. */
import type { Millis } from '../domain/units.ts'

export interface Clock {
  now(): Millis
}

/**
 * Absolute milliseconds between `at` and now.
 * A clock that is set back by 1 h counts as 1 h passed; otherwise a timer would wait that hour again.
 */
export const elapsed = (clock: Clock, at: number): number => Math.abs(clock.now() - at)

export const systemClock: Clock = { now: () => Date.now() as Millis }
