/**
 * Writes readers' tables after the appends: one write for all stored groups since the last. Changes are collected from
 * a state with stored rows only, or with the last group before it is sent.
 */
import type { Logger } from '../../service/logger.ts'
import {
  AppendUnknown,
  type EngineClock,
  JournalUnavailable,
  pause,
  type Tables,
  type TableWrite,
  type Timer,
} from './ports.ts'

export interface FlusherPorts<Row> {
  readonly tables: Tables<Row>
  readonly clock: EngineClock
  readonly timer: Timer
  readonly logger: Logger
  /** The state contains stored rows only. */
  readonly isSettled: () => boolean
  /** The tables have been written, by so many rows in so many milliseconds. */
  readonly onWritten: (rows: number, ms: number) => void
  /** The tables contain other groups than those of this owner. */
  readonly onLost: () => void
}

export interface FlusherStart<Row> {
  readonly token: number
  /** The last group that the tables contain. */
  readonly written: number
  /** The last group of the journal. */
  readonly head: number
  /** Rows of the groups between both. */
  readonly tail: readonly Row[]
}

export interface Flusher<Row> {
  /** A group is about to be sent: the state has exactly its rows behind those of the last one. */
  closing(rows: readonly Row[]): void
  /** The closed group is stored under the number. */
  stored(number: number): void
  /** The closed group will not be stored; `head` is the journal's last group. Called before its rows are taken back. */
  takenBack(head: number): void
  /** Resolves with true once the tables contain the group, and with false if the owner ends before. */
  whenWritten(number: number): Promise<boolean>
  /** The tables lack what was answered too long ago: nothing more may be decided. */
  isBehind(): boolean
  /** The tables contain every stored group. */
  isIdle(): boolean
  /** From now on no write waits for further groups. */
  hurry(): void
  stop(): void
}

/** Between the beginnings of two writes, so that groups share one. */
const PAUSE_MS = 40
/** The same while a command waits for the write, and while traders wait for a batch. */
const COMMAND_PAUSE_MS = 20
const BATCH_PAUSE_MS = 5
/** Apis look for an order in the tables for half a second. */
const MOST_BEHIND_MS = 400
const RETRY_MS = 20

export function createFlusher<Row>(
  { tables, clock, timer, logger, isSettled, onWritten, onLost }: FlusherPorts<Row>,
  { token, written: begun, head, tail }: FlusherStart<Row>,
): Flusher<Row> {
  let written = begun
  let stored = head
  /** Rows of stored groups that are in no write yet. */
  let pending: Row[] = [...tail]
  let closed: { readonly rows: readonly Row[]; readonly write: TableWrite | null } | null = null
  let isWriting = false
  let isAwaited = tail.length > 0
  let isHurried = false
  let isStopped = false
  let startedAt = Number.NEGATIVE_INFINITY
  let behindSince = clock.monotonic()
  let cancelTimer: (() => void) | null = null
  let waiters: { readonly number: number; readonly resolve: (isWritten: boolean) => void }[] = []

  const pauseMs = (): number => {
    if (isHurried) return 0
    if (isAwaited) return BATCH_PAUSE_MS
    return waiters.length > 0 ? COMMAND_PAUSE_MS : PAUSE_MS
  }

  const waitMs = (): number => startedAt + pauseMs() - clock.monotonic()

  const isDue = (): boolean => !isWriting && !isStopped && waitMs() <= 0

  function step(): void {
    if (isStopped || isWriting || written === stored || closed?.write != null) return
    if (!isDue()) {
      cancelTimer?.()
      cancelTimer = timer.after(Math.max(1, waitMs()), step)
    } else if (isSettled()) begin(tables.collect(pending))
  }

  function begin(write: TableWrite): void {
    const { length } = pending
    const number = stored
    pending = []
    isAwaited = false
    isWriting = true
    startedAt = clock.monotonic()
    finish(write, number, length).catch((err: unknown) => {
      logger.error({ err }, 'the tables of readers cannot be written')
      if (!isStopped) onLost()
    })
  }

  async function finish(write: TableWrite, number: number, rows: number): Promise<void> {
    const isOwn = await repeat(write, number)
    if (isStopped) return
    if (!isOwn) {
      onLost()
      return
    }
    written = number
    isWriting = false
    behindSince = startedAt
    const waiting = waiters
    waiters = waiting.filter((waiter) => waiter.number > written)
    for (const waiter of waiting) if (waiter.number <= written) waiter.resolve(true)
    step()
    onWritten(rows, clock.monotonic() - startedAt)
  }

  /** Repeats the write until its outcome is known. */
  async function repeat(write: TableWrite, number: number): Promise<boolean> {
    while (!isStopped) {
      try {
        return (await write.run({ token, from: written, to: number })) || (await tables.written()) === number
      } catch (err) {
        if (!(err instanceof AppendUnknown || err instanceof JournalUnavailable)) throw err
        logger.warn({ err, number }, 'tables of readers not written; will retry')
        await pause(timer, RETRY_MS)
      }
    }
    return false
  }

  timer.soon(step)

  return {
    closing(rows) {
      isAwaited ||= tables.isAwaited(rows)
      closed = { rows, write: isDue() ? tables.collect([...pending, ...rows]) : null }
    },
    stored(number) {
      if (closed === null) return
      const { rows, write } = closed
      if (written === stored) behindSince = clock.monotonic()
      stored = number
      for (const row of rows) pending.push(row)
      closed = null
      if (write === null) step()
      else begin(write)
    },
    takenBack(head) {
      if (closed?.write != null) tables.giveBack()
      closed = null
      // The attempt may have stored groups without rows.
      stored = head
      // Without a further group, as while too much is missing, nothing else would begin the next write.
      timer.soon(step)
    },
    whenWritten(number) {
      if (number <= written) return Promise.resolve(true)
      if (isStopped) return Promise.resolve(false)
      return new Promise((resolve) => {
        waiters.push({ number, resolve })
        step()
      })
    },
    isBehind: () => written < stored && clock.monotonic() - behindSince > MOST_BEHIND_MS,
    isIdle: () => written === stored,
    hurry() {
      isHurried = true
      step()
    },
    stop() {
      isStopped = true
      cancelTimer?.()
      for (const { resolve } of waiters) resolve(false)
      waiters = []
    },
  }
}
