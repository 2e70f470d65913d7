/**
 * What a pause of the bank means for liquidations: after it, owners of positions get time to add margin first.
 * Twin of the contract's PauseLib.
 */
import { PAUSE_GRACE } from '../settlement/durations.ts'
import type { Millis, Seconds } from '../units.ts'

/** First `asOf` at which accounts with equity may be liquidated. `pauseEndsAt`: of the last pause; 0 if there was none. */
export const graceEndsAt = (pauseEndsAt: Seconds): Millis => (pauseEndsAt * 1000 + PAUSE_GRACE) as Millis

/**
 * False if the chain refuses to liquidate the account (forced record, inheritance, deleveraging) because a pause
 * has just ended. An account without equity has nothing left to defend. `equity`: only its sign counts.
 */
export const isPastGrace = (pauseEndsAt: Seconds, asOf: Millis, equity: bigint): boolean =>
  equity <= 0n || asOf >= graceEndsAt(pauseEndsAt)
