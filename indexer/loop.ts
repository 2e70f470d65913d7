/** Runs a job again and again: at once while there is more to do, when woken, and otherwise at an interval. */

export interface LoopOptions {
  /** Returns true if there is more to do at once. */
  readonly run: () => Promise<boolean>
  readonly intervalMs: number
  /** Where wakes come thick and fast: a run without more to do at once is followed by the next no sooner than this after its start. */
  readonly restMs?: number
  /** The pause after the first failure; doubled with each in a row. */
  readonly retryMs: number
  readonly retryMaxMs: number
  /** Told of each failure. An error thrown from here ends the loop. */
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

  /** Work may have come: the interval does not matter. During a run it means one more run; during a pause nothing. */
  wake(): void {
    this.#isWoken = true
    this.#wake()
  }

  /** Resolves once a run under way has ended. */
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
