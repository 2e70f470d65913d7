/** When a market may auction: only while what it has already matched settles fast enough to be mined before it is refused. */
import { ACTION_LIFETIME } from '../settlement/durations.ts'
import type { Millis } from '../units.ts'

/** Guess for a market that has settled nothing yet. */
const INITIAL_PART_MS = 50
/** Weight of the newest observation. */
const SAMPLE_WEIGHT = 0.2

/** Parts that are matched and not mined. */
export interface SettlementBacklog {
  readonly unsettled: number
  /** Parts ever queued in this market. */
  readonly queued: number
  /** When the oldest unsettled part was matched; null where all are settled. */
  readonly oldest: Millis | null
}

/** How long a part has lately taken, while there was any to settle. */
export interface SettlementPace {
  readonly partMs: number
  readonly last: { readonly at: Millis; readonly unsettled: number; readonly queued: number } | null
}

export const INITIAL_PACE: SettlementPace = { partMs: INITIAL_PART_MS, last: null }

/** Learns from what has been settled since the last look. Time in which nothing waited does not count. */
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

/** The oldest unsettled batch is younger than half an action's life, and the rest takes at most a quarter of it. */
export const mayAuction = (
  { unsettled, oldest }: SettlementBacklog,
  { partMs }: SettlementPace,
  now: Millis,
): boolean =>
  (oldest === null || now - oldest < ACTION_LIFETIME / 2) && unsettled * partMs <= ACTION_LIFETIME / 4
