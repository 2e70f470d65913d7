/**
 * Width of a market's price protection: how far from the reference price its market orders may fill.
 * The width is stored off chain. A change is announced one day ahead.
 */
import { type Millis, ONE, type Rate } from '../units.ts'
import type { MarketKind } from './market.ts'

type WidthByKind = { readonly [Kind in MarketKind]: Rate }

/** Initial width: a fraction of the price, or an absolute distance for a binary future. */
export const DEFAULT_PRICE_PROTECTION: WidthByKind = {
  perpetual: (ONE / 100n) as Rate,
  future: (ONE / 50n) as Rate,
  binary_future: ((3n * ONE) / 100n) as Rate,
}

/**
 * The largest width that still protects. With 10 %, a market order may fill up to 1.1² - 1 = 21 % from the best quote,
 * while the widest bands are 20 %. For binary futures the distance is at most 0.25.
 */
export const MAX_PRICE_PROTECTION: WidthByKind = {
  perpetual: (ONE / 10n) as Rate,
  future: (ONE / 10n) as Rate,
  binary_future: (ONE / 5n) as Rate,
}

export const isPriceProtection = (kind: MarketKind, width: bigint): width is Rate =>
  width > 0n && width <= MAX_PRICE_PROTECTION[kind]

/** One day, so that traders and their programs can adapt. */
export const PROTECTION_NOTICE = 86_400_000 as Millis

export interface ProtectionSchedule {
  readonly inForce: Rate
  /** Announced width and the time from which it applies. */
  readonly next: { readonly width: Rate; readonly at: Millis } | null
}

/**
 * The schedule at `at`, with a due announcement put in force. An auction applies the width in force at its
 * `asOf`.
 */
export const scheduleAt = (schedule: ProtectionSchedule, at: Millis): ProtectionSchedule =>
  schedule.next !== null && schedule.next.at <= at ? { inForce: schedule.next.width, next: null } : schedule

/** Announces a width. It replaces an earlier announcement that is not in force yet. */
export const announceWidth = (schedule: ProtectionSchedule, width: Rate, at: Millis) => ({
  inForce: scheduleAt(schedule, at).inForce,
  next: { width, at: (at + PROTECTION_NOTICE) as Millis },
})
