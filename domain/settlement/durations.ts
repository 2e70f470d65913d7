/** Protocol durations that contracts and services share. Twin of contracts/types/Durations.sol. */
import type { Millis } from '../units.ts'

/** A cancel, a revocation or a withdrawal request applies to batches with `asOf` > request time + CANCEL_GRACE. */
export const CANCEL_GRACE = 5_000 as Millis

/** The chain refuses an action if `asOf` > block time + ACTION_AHEAD, and a report if its time > `asOf` + ACTION_AHEAD. */
export const ACTION_AHEAD = 2_000 as Millis

/** Time after a bank pause in which the chain liquidates no account with positive equity. */
export const PAUSE_GRACE = 600_000 as Millis

/** The chain refuses an action if block time > `asOf` + ACTION_LIFETIME. */
export const ACTION_LIFETIME = 10_000 as Millis

/**
 * First block time, in whole seconds, at which the bank pays a withdrawal.
 * Batches with `asOf` up to the request time + CANCEL_GRACE may still debit the account; by then all of them have expired.
 */
export const payableAt = (requestedAt: number): number => requestedAt + CANCEL_GRACE + ACTION_LIFETIME + 1_000
