/** When a feed gets its next report. */
import { abs, type Millis, maxOf } from '../units.ts'
import type { Reading } from './aggregate.ts'

export interface PublicationRules {
  /** A report is published at least this often. */
  readonly interval: Millis
  /** A value that has moved by this much, in millionths of the last one, is published at once. */
  readonly deviation: bigint
}

/** `last`: the latest report; null if there is none, or if the feed is not live. */
export function isReportDue(
  last: Reading | null,
  value: bigint,
  now: Millis,
  { interval, deviation }: PublicationRules,
): boolean {
  if (last === null || now - last.observedAt >= interval) return true
  return abs(value - last.price) * 1_000_000n >= maxOf(1n, abs(last.price) * deviation)
}

/** Reports of a feed have different times, so that no two can contradict each other. */
export const nextObservedAt = (now: Millis, last: Reading | null): Millis =>
  last === null ? now : (maxOf(now, last.observedAt + 1) as Millis)
