/** Decides when a feed gets its next report. */
import { abs, type Millis, maxOf } from '../units.ts'
import type { Reading } from './aggregate.ts'

export interface PublicationRules {
  /** Length of a period; each period has at least one report. */
  readonly interval: Millis
  /**
   * Offset by which this feed's periods begin earlier, so that the phases of an exchange's feeds alternate.
   */
  readonly phase: Millis
  /** A move of this size, in millionths of the last value, is published at once. */
  readonly deviation: bigint
}

/** `last`: the latest report; null if there is none, or if the feed is not live. */
export function isReportDue(
  last: Reading | null,
  value: bigint,
  now: Millis,
  { interval, phase, deviation }: PublicationRules,
): boolean {
  const periodOf = (time: Millis): number => Math.floor((time + phase) / interval)
  if (last === null || periodOf(now) > periodOf(last.observedAt)) return true
  return abs(value - last.price) * 1_000_000n >= maxOf(1n, abs(last.price) * deviation)
}

/**
 * Phase of the feed with this index; phases are spread evenly. Feeds of a phase are due together, because a publication
 * costs one signer request, transaction and engine group at any size.
 */
export const phaseOf = (index: number, interval: Millis): Millis =>
  Math.floor(((Math.floor(index / PHASE_FEEDS) * GOLDEN_RATIO) % 1) * interval) as Millis

/** Number of feeds per phase; a small part of the reports that one tick may have. */
const PHASE_FEEDS = 8

const GOLDEN_RATIO = (1 + Math.sqrt(5)) / 2

/** Reports of a feed have different times, so that two reports never contradict each other. */
export const nextObservedAt = (now: Millis, last: Reading | null): Millis =>
  last === null ? now : (maxOf(now, last.observedAt + 1) as Millis)
