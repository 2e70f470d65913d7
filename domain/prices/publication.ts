/** When a feed gets its next report. */
import { abs, type Millis, maxOf } from '../units.ts'
import type { Reading } from './aggregate.ts'

export interface PublicationRules {
  /** A report is published once in each period of this length. */
  readonly interval: Millis
  /** By how much the periods of this feed begin earlier, so that the phases of an exchange's feeds take turns. */
  readonly phase: Millis
  /** A value that has moved by this much, in millionths of the last one, is published at once. */
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
 * Phases take turns: they are spread evenly over the interval, whatever their number. The feeds of a phase are due together, because each publication
 * costs its signers a request, the store a transaction, and the engine a group, however few reports it has.
 */
export const phaseOf = (index: number, interval: Millis): Millis =>
  Math.floor(((Math.floor(index / PHASE_FEEDS) * GOLDEN_RATIO) % 1) * interval) as Millis

/** A small part of the reports that a tick may have. */
const PHASE_FEEDS = 8

const GOLDEN_RATIO = (1 + Math.sqrt(5)) / 2

/** Reports of a feed have different times, so that no two can contradict each other. */
export const nextObservedAt = (now: Millis, last: Reading | null): Millis =>
  last === null ? now : (maxOf(now, last.observedAt + 1) as Millis)
