/**
 * Processor time of this process in recoveries of a signer. A recovery is measured before and after each sample in the same process, so that
 * the figures do not depend on the speed of the machine, and what the process does by itself meanwhile is deducted.
 */
import { performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { recover } from '../../../service/crypto.ts'

/** A digest and its signature: r, s and the recovery id. */
export interface Recoverable {
  readonly digest: Buffer
  readonly signature: Buffer
}

export interface Sampling {
  /** Calls before the first sample: a client that goes on meets compiled code. */
  readonly warm: number
  readonly samples: number
  /** Calls of one sample. */
  readonly calls: number
}

/** About 5 ms. */
const RECOVERIES = 100
const IDLE_MS = 1_000
/** Processor time of a sample of cheap calls, at least. */
const LEAST_SAMPLE_US = 10_000
const WARM_US = 150_000
const MOST_WARM = 60

/** User and system time of all threads, microseconds. */
export function usage(): number {
  const { user, system } = process.cpuUsage()
  return user + system
}

export const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[values.length >> 1] as number

export class ProcessorTime {
  readonly #recoverable: Recoverable
  /** Microseconds per millisecond that the process uses by itself. */
  #idle = 0

  constructor(recoverable: Recoverable) {
    this.#recoverable = recoverable
  }

  /** Measures what the process uses by itself: its polls and timers. */
  async start(): Promise<void> {
    this.recoveryUs()
    const [before, since] = [usage(), performance.now()]
    await sleep(IDLE_MS)
    this.#idle = (usage() - before) / (performance.now() - since)
  }

  recoveryUs(): number {
    const { digest, signature } = this.#recoverable
    const before = usage()
    for (let at = 0; at < RECOVERIES; at++) recover(digest, signature, (at % 2) as 0 | 1)
    return (usage() - before) / RECOVERIES
  }

  /** Microseconds that `work` takes. */
  async #us(work: () => Promise<unknown>, calls: number): Promise<number> {
    const [before, since] = [usage(), performance.now()]
    for (let call = 0; call < calls; call++) await work()
    return Math.max(0, usage() - before - this.#idle * (performance.now() - since))
  }

  /** The cost of one call, in recoveries. */
  async once(work: () => Promise<unknown>, calls = 1): Promise<number> {
    const before = this.recoveryUs()
    const spent = await this.#us(work, calls)
    return spent / calls / ((before + this.recoveryUs()) / 2)
  }

  /** The median cost of a call that can be repeated, in recoveries. */
  async of(work: () => Promise<unknown>, sampling: Partial<Sampling> = {}): Promise<number> {
    const { warm = MOST_WARM, samples = 7 } = sampling
    let spent = 0
    let last = 0
    for (let call = 0; call < warm && spent < WARM_US; call++) spent += last = await this.#us(work, 1)
    const { calls = Math.max(1, Math.ceil(LEAST_SAMPLE_US / Math.max(last, 100))) } = sampling
    const costs: number[] = []
    for (let sample = 0; sample < samples; sample++) costs.push(await this.once(work, calls))
    return median(costs)
  }
}
