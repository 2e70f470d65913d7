/** When this process received the request of a command. */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { SpanRef } from '../service/spans.ts'

export const TICK_MS = 20
/** A tick that is late by more is a pause, of this process (SIGSTOP) or of its machine. */
export const PAUSE_MS = 100
/** Bytes that are read within this time after a pause may have arrived during the pause. */
const DRAIN_MS = 500

/** The request whose work runs. */
export interface PresentRequest {
  /** By the monotonic clock. */
  readonly arrivedAt: number
  /** Names the request in the log lines of all processes. */
  readonly traceId: string
  /** Present if the request is sampled (`request-spans.ts`). */
  readonly span?: SpanRef
}

/**
 * Times by the monotonic clock, never later than the true times: the engine rejects an attempt older than another's
 * answer. Bytes that arrive during a pause are read only afterwards.
 */
export class ArrivalTimes {
  readonly #monotonic: () => number
  readonly #requests = new AsyncLocalStorage<PresentRequest>()
  readonly #timer: NodeJS.Timeout
  #tickAt: number
  #pausedFrom = 0
  #drainedAt = Number.NEGATIVE_INFINITY

  constructor(monotonic: () => number = () => performance.now()) {
    this.#monotonic = monotonic
    this.#tickAt = monotonic()
    this.#timer = setInterval(() => this.tick(), TICK_MS)
    this.#timer.unref()
  }

  /** The process runs. */
  tick(): void {
    const now = this.#monotonic()
    const wasDrained = this.#drainedAt <= this.#tickAt
    if (now - this.#tickAt > TICK_MS + PAUSE_MS) {
      // After a second pause soon after the first, bytes that arrived in the first may still be unread.
      if (wasDrained) this.#pausedFrom = this.#tickAt
      this.#drainedAt = now + DRAIN_MS
    }
    this.#tickAt = now
  }

  /** A time before which nothing that is read now has arrived, unless the process was paused for `PAUSE_MS` at most. */
  now(): number {
    this.tick()
    const now = this.#monotonic()
    return now < this.#drainedAt ? this.#pausedFrom : now
  }

  /** Runs the work of the request. */
  run<Result>(request: PresentRequest, work: () => Result): Result {
    return this.#requests.run(request, work)
  }

  /** Arrival of the present request; the present time outside of requests. */
  get current(): number {
    return this.#requests.getStore()?.arrivedAt ?? this.now()
  }

  /** Trace id of the present request; undefined outside of requests. */
  get traceId(): string | undefined {
    return this.#requests.getStore()?.traceId
  }

  /** Span of the present request; undefined outside of sampled requests. */
  get span(): SpanRef | undefined {
    return this.#requests.getStore()?.span
  }

  stop(): void {
    clearInterval(this.#timer)
  }
}
