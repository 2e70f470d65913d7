/** Runs slow work beside a job's loop, so that the loop does not wait. */
import { type Clock, elapsed } from '../service/clock.ts'
import type { Logger } from '../service/logger.ts'

export interface BackgroundPorts {
  readonly clock: Clock
  readonly logger: Logger
}

/** At most one run at a time. A failed run is logged, and the next starts when it is due. */
export class BackgroundTask {
  readonly #ports: BackgroundPorts
  readonly #failure: string
  readonly #details: object
  #startedAt = Number.NEGATIVE_INFINITY
  #running: Promise<void> | null = null

  /** `failure`: log message for a failed run. */
  constructor(ports: BackgroundPorts, failure: string, details: object) {
    this.#ports = ports
    this.#failure = failure
    this.#details = details
  }

  /** Does nothing during a run, or within `intervalMs` of the last start. */
  poll(intervalMs: number, work: () => Promise<void>): void {
    const { clock, logger } = this.#ports
    if (this.#running !== null || elapsed(clock, this.#startedAt) < intervalMs) return
    this.#startedAt = clock.now()
    this.#running = work()
      .catch((err: unknown) => logger.warn({ ...this.#details, err }, this.#failure))
      .finally(() => {
        this.#running = null
      })
  }

  /** Makes the next run due immediately. */
  makeDue(): void {
    this.#startedAt = Number.NEGATIVE_INFINITY
  }

  /** Resolves when the current run has ended. */
  async settled(): Promise<void> {
    await this.#running
  }
}
