/** Plays one planned run on an exchange: trading, faults one after the other, and the laws at the end. */
import { setTimeout as sleep } from 'node:timers/promises'
import { BatchWatch } from './batch-watch.ts'
import type { ChaosExchange } from './exchange.ts'
import { FallingPrice } from './falling-price.ts'
import { flowOf } from './flows.ts'
import { longestPause, MOST_PAUSE_MS, violations } from './laws.ts'
import type { Load } from './load.ts'
import { AFTER_MS, type PlannedFault, type PlannedRun, RUN_MS } from './plan.ts'

export interface PlayedRun {
  /** One line for each fault, with its times. */
  readonly trace: readonly string[]
  readonly skipped: readonly string[]
  readonly violations: readonly string[]
  /** The longest times to a batch and to an accepted order, ms. */
  readonly longest: { readonly batch: number; readonly order: number }
}

const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`

function falling({ audited: { db }, oracle }: ChaosExchange): Promise<FallingPrice> {
  if (oracle === null) throw new Error('this exchange has no key that signs prices alone')
  return FallingPrice.start({ db, oracle })
}

export class RunPlayer {
  readonly #exchange: ChaosExchange
  readonly #load: Load
  readonly #watch: BatchWatch
  readonly #trace: string[] = []
  readonly #skipped: string[] = []
  readonly #violations: string[] = []
  readonly #longest = { batch: 0, order: 0 }
  #start = 0

  private constructor(exchange: ChaosExchange, load: Load) {
    this.#exchange = exchange
    this.#load = load
    this.#watch = new BatchWatch(exchange.audited.db)
  }

  static async play(
    exchange: ChaosExchange,
    load: Load,
    run: PlannedRun,
    recording: string,
  ): Promise<PlayedRun> {
    const player = new RunPlayer(exchange, load)
    try {
      await player.#play(run, recording)
    } catch (error) {
      player.#violations.push(`recovery: ${(error as Error).message}`)
      load.abort()
    }
    await player.#watch.stop()
    return {
      trace: player.#trace,
      skipped: player.#skipped,
      violations: player.#violations,
      longest: player.#longest,
    }
  }

  async #play(run: PlannedRun, recording: string): Promise<void> {
    const [exchange, load] = [this.#exchange, this.#load]
    await exchange.recovered()
    load.begin(await flowOf(run, exchange.audited, recording))
    const price = run.load === 'crash' ? await falling(exchange) : null
    this.#start = performance.now()
    for (const fault of run.faults) await this.#suffer(fault)
    await sleep(Math.max(0, this.#start + RUN_MS - performance.now()))
    await exchange.recovered()
    await price?.recover()
    await load.end()
    await price?.release()
    this.#violations.push(...(await violations(exchange.audited, load)))
  }

  get #now(): string {
    return seconds(performance.now() - this.#start)
  }

  async #suffer(fault: PlannedFault): Promise<void> {
    const name = `${fault.fault} of ${fault.target}`
    await sleep(Math.max(0, this.#start + fault.at - performance.now()))
    await this.#exchange.recovered()
    const at = performance.now()
    const began = this.#now
    const injected = await this.#exchange.inject(fault)
    if ('skipped' in injected) {
      this.#skipped.push(`${name}: ${injected.skipped}`)
      this.#trace.push(`${began} ${name}: skipped, ${injected.skipped}`)
      return
    }
    this.#load.avoid(injected.fails)
    await sleep(fault.lasts)
    await injected.heal()
    const healed = performance.now()
    const ended = this.#now
    this.#load.avoid([])
    const from = injected.hasTwin ? at : healed
    const { pauseMs = MOST_PAUSE_MS } = injected
    // A pause that is too long is seen as such even if it has not ended.
    await sleep(Math.max(AFTER_MS, from + pauseMs + AFTER_MS - MOST_PAUSE_MS - performance.now()))
    const pauses = this.#measure(injected.on, from, pauseMs)
    this.#trace.push(`${began} to ${ended}: ${fault.fault} of ${injected.on}; ${pauses}`)
  }

  /** Compares the longest pauses since `from` with their bound. Returns them as text. */
  #measure(on: string, from: number, most: number): string {
    const until = performance.now()
    const pauses = {
      batch: this.#longestOf(this.#watch.at, from, until),
      order: this.#longestOf(this.#load.acceptedAt, from, until),
    }
    for (const what of ['batch', 'order'] as const) {
      const { ms, marketId } = pauses[what]
      this.#longest[what] = Math.max(this.#longest[what], ms)
      if (ms > most)
        this.#violations.push(`pauses: ${on}: ${ms} ms without an accepted ${what} in market ${marketId}`)
    }
    return `longest pause to a batch ${pauses.batch.ms} ms, to an accepted order ${pauses.order.ms} ms`
  }

  #longestOf(times: ReadonlyMap<number, readonly number[]>, from: number, until: number) {
    const pauses = this.#exchange.audited.specs.map(({ marketId }) => ({
      marketId,
      ms: Math.round(longestPause(times.get(marketId) ?? [], from, until)),
    }))
    return pauses.reduce((most, pause) => (pause.ms > most.ms ? pause : most))
  }
}
