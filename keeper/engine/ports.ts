/** Ports of the engine's shell: clock, timers, journal, lease and log. The simulation implements every port deterministically. */
import type { Millis } from '../../domain/units.ts'

/** The newest version of rows and groups that this code reads and writes. */
export const GROUP_VERSION = 1

/** Rows that are stored together. */
export interface Group<Row> {
  /** Gapless, from 1. */
  readonly number: number
  /** Token of the owner that appended the group. */
  readonly token: number
  readonly version: number
  readonly rows: readonly Row[]
  /**
   * State digest before these rows. A follower with a different digest has applied a group that the database has lost.
   */
  readonly before: string
  /** State digest after these rows. */
  readonly digest: string
}

/** It is not known whether the group is stored. */
export class AppendUnknown extends Error {}
/** The database refused what the group contains; it is not stored. */
export class ContentRejected extends Error {}
/** The database cannot store anything at present; the group is not stored. */
export class JournalUnavailable extends Error {}

export interface Journal<Row> {
  /**
   * Stores the group if its number follows the head and its token is current; false if not. Throws AppendUnknown,
   * ContentRejected or JournalUnavailable.
   */
  append(group: Group<Row>): Promise<boolean>
  /** At most `most` groups after the number, in their order. Throws JournalUnavailable. */
  read(after: number, most: number): Promise<readonly Group<Row>[]>
  /** The same of the groups that the tables of readers contain. */
  readWritten(after: number, most: number): Promise<readonly Group<Row>[]>
}

/** A write of the tables of readers. */
export interface TableStep {
  readonly token: number
  /** The last group that the tables contain before the write, and after it. */
  readonly from: number
  readonly to: number
}

export interface TableWrite {
  /**
   * Writes collected changes in one transaction; false if the token or the tables' groups differ, for example after an
   * earlier call. Throws AppendUnknown or JournalUnavailable; it can be repeated.
   */
  run(step: TableStep): Promise<boolean>
}

/** The tables of readers, which follow the journal in transactions of their own. */
export interface Tables<Row> {
  /** The last group that they contain. Throws JournalUnavailable. */
  written(): Promise<number>
  /** The tables have the present state of the member, which becomes the owner: its changes are noted from now on. */
  begin(): void
  /** Takes what has changed since the last call. The state has exactly these rows behind those of the last call. */
  collect(rows: readonly Row[]): TableWrite
  /** Discards the last write. The next write contains its changes that are not undone. */
  giveBack(): void
  /** Whether readers wait for one of the rows. */
  isAwaited(rows: readonly Row[]): boolean
}

/** The lease as one reading of its row shows it. */
export interface LeaseReading {
  readonly token: number
  /** Grows with every renewal. */
  readonly renewals: number
  /** The owner has given the lease up. */
  readonly isReleased: boolean
}

export interface Lease {
  read(): Promise<LeaseReading>
  /** Takes the next token if the lease is still as it was read; null if not. */
  take(seen: LeaseReading): Promise<number | null>
  /** Counts a renewal; false if the token is no longer the current one. */
  renew(token: number): Promise<boolean>
  /** Lets another member take the lease at once. */
  release(token: number): Promise<void>
}

export interface EngineClock {
  /** The database's clock, continued by the monotonic clock between readings. */
  now(): Millis
  /** Milliseconds from an unknown origin; never steps, and runs on while the process is frozen. */
  monotonic(): number
}

export interface Timer {
  /** Calls `work` once, after at least this many milliseconds. Returns a function that cancels it. */
  after(ms: number, work: () => void): () => void
  /** Calls `work` after the pending input and output of this turn of the event loop. */
  soon(work: () => void): void
}

export const pause = (timer: Timer, ms: number): Promise<void> =>
  new Promise((resolve) => {
    timer.after(ms, resolve)
  })
