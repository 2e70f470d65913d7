/** Runs a step again and again while this process owns a lease, and waits for the lease while another one does. */

import type { Fence } from '../../db/fence.ts'
import { LeaseLost } from '../../db/fence.ts'
import type { Leases } from '../../db/leases.ts'
import type { Clock } from '../../service/clock.ts'
import type { Logger } from '../../service/logger.ts'

export interface OwnedWork {
  /** Under a new lease, before the first step. */
  start?(fence: Fence): Promise<void>
  /** Returns how long to wait before the next step, unless woken. */
  step(fence: Fence): Promise<number>
  /** What was read under the lease is not to be trusted any more: an error, or the lease is gone. */
  forget?(): void
  /** Before the lease is given back in order. */
  finish?(fence: Fence): Promise<void>
}

export interface OwnedLoopPorts {
  readonly leases: Leases
  readonly clock: Clock
  readonly logger: Logger
  readonly leaseMs: number
}

export interface OwnedLoop {
  readonly name: string
  wake(): void
  isOwner(): boolean
  /** Finishes the step that runs and gives the lease back. */
  stop(): Promise<void>
}

/** After an error, so that a broken dependency is not hammered. */
const PAUSE_MS = 250

export function runOwned(ports: OwnedLoopPorts, name: string, work: OwnedWork): OwnedLoop {
  const { leases, logger, leaseMs } = ports
  const sleeper = new Sleeper()
  let isStopping = false
  let fence: Fence | null = null

  async function own(owned: Fence): Promise<void> {
    let renewed = Promise.resolve()
    const renewal = setInterval(() => {
      renewed = renew(owned)
    }, leaseMs / 3)
    try {
      await work.start?.(owned)
      while (!isStopping && fence === owned) await sleeper.sleep(await work.step(owned))
      if (fence === owned) await work.finish?.(owned)
    } finally {
      clearInterval(renewal)
      // One that is under way would take the lease again after it was given back.
      await renewed
    }
  }

  async function renew(owned: Fence): Promise<void> {
    try {
      if (await leases.renew(owned)) return
      if (fence === owned) fence = null
      sleeper.wake()
    } catch (err) {
      logger.warn({ lease: name, err }, 'a lease could not be renewed')
    }
  }

  async function run(): Promise<void> {
    while (!isStopping) {
      try {
        fence ??= await leases.acquire(name)
        if (fence === null) await sleeper.sleep(leaseMs / 3)
        else await own(fence)
      } catch (err) {
        work.forget?.()
        if (err instanceof LeaseLost) fence = null
        logger.error({ lease: name, err }, 'a step failed')
        await sleeper.sleep(PAUSE_MS)
      }
      if (fence === null) work.forget?.()
    }
    if (fence !== null)
      await leases.release(fence).catch((err: unknown) => logger.warn({ lease: name, err }, 'not released'))
    fence = null
  }

  const running = run()
  return {
    name,
    wake: () => sleeper.wake(),
    isOwner: () => fence !== null,
    async stop() {
      isStopping = true
      sleeper.wake()
      await running
    },
  }
}

/** A pause that a wake-up ends, also one that comes before the pause. */
class Sleeper {
  #isWoken = false
  #end: (() => void) | null = null

  wake(): void {
    this.#isWoken = true
    this.#end?.()
  }

  async sleep(ms: number): Promise<void> {
    if (!this.#isWoken && ms > 0) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, ms)
        this.#end = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
    this.#end = null
    this.#isWoken = false
  }
}
