/** The computer's clock, and the switch that ends the process at a named point in tests. */
import type { Millis } from '../../domain/units.ts'
import type { Clock, Reached } from '../ports.ts'

export const systemClock: Clock = { now: () => Date.now() as Millis }

/** Ends the process without any clean-up when it reaches `point`: what a power cut would do. */
export const killAt =
  (point: string | null): Reached =>
  (reached) => {
    if (reached === point) process.kill(process.pid, 'SIGKILL')
  }
