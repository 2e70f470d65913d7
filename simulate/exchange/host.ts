/** A simulated process: its clocks, its timers, and what freezing or killing it does to them. */
import type { Millis } from '../../domain/units.ts'
import type { EngineClock, Timer } from '../../keeper/engine/ports.ts'
import type { Scheduler } from './scheduler.ts'

/** The clock of the database as every process reads it. */
export interface SharedClock {
  offset: number
}

export class Host implements EngineClock, Timer {
  readonly name: string
  isDead = false
  isFrozen = false
  /** Work that came due while the process was frozen. */
  #due: (() => void)[] = []
  readonly #scheduler: Scheduler
  readonly #origin: number
  readonly #shared: SharedClock

  constructor(name: string, scheduler: Scheduler, shared: SharedClock, origin: number) {
    this.name = name
    this.#scheduler = scheduler
    this.#shared = shared
    this.#origin = origin
  }

  now(): Millis {
    return Math.floor(this.#scheduler.now + this.#shared.offset) as Millis
  }

  monotonic(): number {
    return this.#scheduler.now + this.#origin
  }

  after(ms: number, work: () => void): () => void {
    let isCancelled = false
    this.#scheduler.after(ms, () =>
      this.deliver(() => {
        if (!isCancelled) work()
      }),
    )
    return () => {
      isCancelled = true
    }
  }

  soon(work: () => void): void {
    this.#scheduler.after(0, () => this.deliver(work))
  }

  /** Runs work of this process: at once, when it continues, or never. */
  deliver(work: () => void): void {
    if (this.isDead) return
    if (this.isFrozen) this.#due.push(work)
    else work()
  }

  freeze(): void {
    this.isFrozen = true
  }

  thaw(): void {
    this.isFrozen = false
    const due = this.#due
    this.#due = []
    for (const work of due) this.#scheduler.after(0, () => this.deliver(work))
  }

  kill(): void {
    this.isDead = true
    this.#due = []
  }
}
