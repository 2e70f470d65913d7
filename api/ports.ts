/** What the api needs from the computer it runs on. */
import type { Millis } from '../domain/units.ts'

export interface Clock {
  now(): Millis
}

/** What the database tells its listeners. */
export interface Notifications {
  on(channel: string, listener: (payload: string) => void): void
  /** Called when the connection broke: what was told meanwhile is lost. */
  onLost(listener: () => void): void
  isListening(): boolean
}

/** Tells where the process is; a kill test ends it there. */
export type Reached = (point: string) => void

export const systemClock: Clock = { now: () => Date.now() as Millis }

/** Ends the process without any clean-up when it reaches `point`: what a power cut would do. */
export const killAt =
  (point: string | null): Reached =>
  (reached) => {
    if (reached === point) process.kill(process.pid, 'SIGKILL')
  }
