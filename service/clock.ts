/** The time of day as a port, so that tests can set it. */
import type { Millis } from '../domain/units.ts'

export interface Clock {
  now(): Millis
}

export const systemClock: Clock = { now: () => Date.now() as Millis }
