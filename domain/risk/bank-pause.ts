/**
 * Effect of a bank pause on liquidations: owners of positions get time after it to add margin. Twin of the
 * contract's PauseLib.
 */
import { PAUSE_GRACE } from '../settlement/durations.ts'
import type { Millis, Seconds } from '../units.ts'

/**
 * First `asOf` at which accounts with positive equity may be liquidated.
 * `pauseEndsAt`: end of the last pause; 0 if there was none.
 */
export const graceEndsAt = (pauseEndsAt: Seconds): Millis => (pauseEndsAt * 1000 + PAUSE_GRACE) as Millis

/**
 * False if the chain refuses forced records, inheritance and deleveraging because a pause has just ended. An account
 * without equity has no grace; only the sign of `equity` counts.
 */
export const isPastGrace = (pauseEndsAt: Seconds, asOf: Millis, equity: bigint): boolean =>
  equity <= 0n || asOf >= graceEndsAt(pauseEndsAt)
