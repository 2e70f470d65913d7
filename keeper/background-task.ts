/** Work beside the loop of a job, which must not wait for it. */
import { type Clock, elapsed } from '../service/clock.ts'
import type { Logger } from '../service/logger.ts'

export interface BackgroundPorts {
  readonly clock: Clock
  readonly logger: Logger
}

/** One run at a time. A run that fails is logged, and the next one starts when it is due. */
export class BackgroundTask {
  readonly #ports: BackgroundPorts
  readonly #failure: string
  readonly #details: object
  #startedAt = Number.NEGATIVE_INFINITY
  #running: Promise<void> | null = null

  /** `failure`: the message of a run that failed. */
  constructor(ports: BackgroundPorts, failure: string, details: object) {
    this.#ports = ports
    this.#failure = failure
    this.#details = details
  }

  /** Does nothing while a run goes on, or if the last one started less than `intervalMs` ago. */
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

  /** The next run is due at once. */
  makeDue(): void {
    this.#startedAt = Number.NEGATIVE_INFINITY
  }

  /** Resolves when the running one has ended. */
  async settled(): Promise<void> {
    await this.#running
  }
}
