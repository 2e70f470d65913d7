/** Runs a job repeatedly: again at once while the job has more to do, on a wake-up, and otherwise at an interval. */

export interface LoopOptions {
  /** Returns true if there is more to do now. */
  readonly run: () => Promise<boolean>
  readonly intervalMs: number
  /** For frequent wake-ups: least time between the start of a run that left nothing to do and the start of the next run. */
  readonly restMs?: number
  /** Extends that time to this many times the run's duration, up to `restMaxMs`: on a busy machine runs become fewer and larger. */
  readonly restRatio?: number
  readonly restMaxMs?: number
  /**
   * The bound after a run that an urgent wake-up has caused, unless the run took so long that `URGENT_REST_RATIO` demands more: a shorter
   * time leaves less work to the next urgent one.
   */
  readonly urgentRestMaxMs?: number
  /** Time between two runs that no wake-up shortens: as long as the last run took, up to this. Urgent runs then take at most half of the time. */
  readonly leastRestMaxMs?: number
  /** Pause after the first failure; it doubles with each consecutive failure, up to `retryMaxMs`. */
  readonly retryMs: number
  readonly retryMaxMs: number
  /** Called for each failure. An error thrown from it ends the loop. */
  readonly onFailure: (error: Error, pauseMs: number) => void
}

/** Under overload, runs must not become more frequent because they are urgent. */
const URGENT_REST_RATIO = 3

/** Wake-ups that end a pause: none, only urgent ones (which skip the rest between runs), or any. */
type WokenBy = 'none' | 'urgent' | 'any'

export class Loop {
  readonly #options: LoopOptions
  #wake: (isUrgent: boolean) => void = () => {}
  #isWoken = false
  #isUrgent = false
  #isWanted = true
  #done: Promise<void> = Promise.resolve()

  constructor(options: LoopOptions) {
    this.#options = options
  }

  start(): void {
    this.#done = this.#loop()
  }

  /**
   * Ends the interval, and the least time between runs too if it is urgent. During a run it causes one more run; during a pause after a
   * failure it has no effect.
   */
  wake(isUrgent = false): void {
    this.#isWoken = true
    this.#isUrgent ||= isUrgent
    this.#wake(isUrgent)
  }

  /** Resolves when the current run has ended. */
  async stop(): Promise<void> {
    this.#isWanted = false
    this.#wake(true)
    await this.#done
  }

  async #loop(): Promise<void> {
    const { run, intervalMs, restMs = 0, restRatio = 0, restMaxMs = 0 } = this.#options
    const { urgentRestMaxMs = restMaxMs, leastRestMaxMs = 0 } = this.#options
    const { retryMs, retryMaxMs, onFailure } = this.#options
    let failures = 0
    while (this.#isWanted) {
      this.#isWoken = false
      const isUrgent = this.#isUrgent
      this.#isUrgent = false
      const start = performance.now()
      try {
        const hasMore = await run()
        const took = performance.now() - start
        const longest = isUrgent ? Math.max(urgentRestMaxMs, URGENT_REST_RATIO * took) : restMaxMs
        const period = Math.max(restMs, Math.min(restMaxMs, longest, restRatio * took))
        failures = 0
        const least = hasMore ? 0 : Math.min(took, leastRestMaxMs)
        if (least > 0) await this.#sleep(least, 'none')
        if (!hasMore && !this.#isWoken) await this.#sleep(intervalMs)
        const rest = start + period - performance.now()
        if (!hasMore && rest > 0 && !this.#isUrgent) await this.#sleep(rest, 'urgent')
      } catch (error) {
        const pause = Math.min(retryMaxMs, retryMs * 2 ** failures++)
        onFailure(error as Error, pause)
        this.#isWoken = false
        await this.#sleep(pause, 'none')
      }
    }
  }

  #sleep(ms: number, wokenBy: WokenBy = 'any'): Promise<void> {
    if (!this.#isWanted) return Promise.resolve()
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms)
      this.#wake = (isUrgent) => {
        const ends = wokenBy === 'any' || (wokenBy === 'urgent' && isUrgent)
        if (!ends && this.#isWanted) return
        clearTimeout(timer)
        resolve()
      }
    })
  }
}
