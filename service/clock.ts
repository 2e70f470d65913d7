/** The time of day as a port, so that tests can set it. */
import type { Millis } from '../domain/units.ts'

export interface Clock {
  now(): Millis
}

/** Milliseconds from `at` to now. A clock that was set back counts as time passed, so that no interval waits until it has caught up. */
export const elapsed = (clock: Clock, at: number): number => Math.abs(clock.now() - at)

export const systemClock: Clock = { now: () => Date.now() as Millis }
