/** Runs a job repeatedly: again at once while the job has more to do, on a wake-up, and otherwise at an interval. */

export interface LoopOptions {
  /** Returns true if there is more to do now. */
  readonly run: () => Promise<boolean>
  readonly intervalMs: number
  /** For frequent wake-ups: least time between the start of a run that left nothing to do and the start of the next run. */
  readonly restMs?: number
  /** Pause after the first failure; it doubles with each consecutive failure, up to `retryMaxMs`. */
  readonly retryMs: number
  readonly retryMaxMs: number
  /** Called for each failure. An error thrown from it ends the loop. */
  readonly onFailure: (error: Error, pauseMs: number) => void
}

export class Loop {
  readonly #options: LoopOptions
  #wake: () => void = () => {}
  #isWoken = false
  #isWanted = true
  #done: Promise<void> = Promise.resolve()

  constructor(options: LoopOptions) {
    this.#options = options
  }

  start(): void {
    this.#done = this.#loop()
  }

  /** Skips the rest of the interval. During a run it causes one more run; during a pause after a failure it has no effect. */
  wake(): void {
    this.#isWoken = true
    this.#wake()
  }

  /** Resolves when the current run has ended. */
  async stop(): Promise<void> {
    this.#isWanted = false
    this.#wake()
    await this.#done
  }

  async #loop(): Promise<void> {
    const { run, intervalMs, restMs = 0, retryMs, retryMaxMs, onFailure } = this.#options
    let failures = 0
    while (this.#isWanted) {
      this.#isWoken = false
      const start = performance.now()
      try {
        const hasMore = await run()
        failures = 0
        if (!hasMore && !this.#isWoken) await this.#sleep(intervalMs)
        const rest = start + restMs - performance.now()
        if (!hasMore && rest > 0) await this.#sleep(rest, false)
      } catch (error) {
        const pause = Math.min(retryMaxMs, retryMs * 2 ** failures++)
        onFailure(error as Error, pause)
        this.#isWoken = false
        await this.#sleep(pause, false)
      }
    }
  }

  #sleep(ms: number, canWake = true): Promise<void> {
    if (!this.#isWanted) return Promise.resolve()
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms)
      this.#wake = () => {
        if (!canWake && this.#isWanted) return
        clearTimeout(timer)
        resolve()
      }
    })
  }
}
