/**
 * Decides whether a market may run an auction: its matched parts must settle fast enough to be mined within
 * the lifetime of an action.
 */
import { ACTION_LIFETIME } from '../settlement/durations.ts'
import type { Millis } from '../units.ts'

/** Assumed settlement time of a part before the first measurement. */
const INITIAL_PART_MS = 50
/** Weight of the newest measurement in the moving average. */
const SAMPLE_WEIGHT = 0.2

/** Matched parts that are not mined. */
export interface SettlementBacklog {
  readonly unsettled: number
  /** Total number of parts that this market has queued. */
  readonly queued: number
  /** Match time of the oldest unsettled part; null if all parts are settled. */
  readonly oldest: Millis | null
}

/** Moving average of the time per settled part, measured while parts were waiting. */
export interface SettlementPace {
  readonly partMs: number
  readonly last: { readonly at: Millis; readonly unsettled: number; readonly queued: number } | null
}

export const INITIAL_PACE: SettlementPace = { partMs: INITIAL_PART_MS, last: null }

/**
 * Adds a measurement over the parts settled since the last measurement. Time without unsettled parts is not counted.
 */
export function updatePace(
  pace: SettlementPace,
  { unsettled, queued }: SettlementBacklog,
  now: Millis,
): SettlementPace {
  const last = { at: now, unsettled, queued }
  if (pace.last === null || pace.last.unsettled === 0) return { ...pace, last }
  const settled = queued - pace.last.queued - (unsettled - pace.last.unsettled)
  if (settled <= 0) return pace
  const sample = (now - pace.last.at) / settled
  return { partMs: pace.partMs * (1 - SAMPLE_WEIGHT) + sample * SAMPLE_WEIGHT, last }
}

/**
 * True if the oldest unsettled part is younger than half of `ACTION_LIFETIME` and the backlog is expected to
 * take at most a quarter of it.
 */
export const mayAuction = (
  { unsettled, oldest }: SettlementBacklog,
  { partMs }: SettlementPace,
  now: Millis,
): boolean =>
  (oldest === null || now - oldest < ACTION_LIFETIME / 2) && unsettled * partMs <= ACTION_LIFETIME / 4
