/** Runs a job in a loop while this process owns the job's lease; waits for the lease while another process owns it. */

import type { Fence } from '../../db/fence.ts'
import { LeaseLost } from '../../db/fence.ts'
import type { Leases } from '../../db/leases.ts'
import type { Clock } from '../../service/clock.ts'
import type { Logger } from '../../service/logger.ts'

export interface LeaderJob {
  /** Runs before the first step under a new lease. */
  start?(fence: Fence): Promise<void>
  /** Returns the pause before the next step, ms; `wake` ends the pause. */
  step(fence: Fence): Promise<number>
  /** Whether this process should own the lease. If not, the lease is released after the running step. Without it: always. */
  isWanted?(): boolean
  /** Discards what was read under the lease: after an error, or when the lease is lost. */
  reset?(): void
  /** Runs before the lease is released in order. */
  finish?(fence: Fence): Promise<void>
}

export interface LeaderLoopPorts {
  readonly leases: Leases
  readonly clock: Clock
  readonly logger: Logger
  readonly leaseMs: number
}

export interface LeaderLoop {
  readonly name: string
  wake(): void
  isLeader(): boolean
  /** Finishes the running step and releases the lease. */
  stop(): Promise<void>
}

/** Looks for an expired lease within its life. */
const LOOKS = 6

/** Pause after an error, so that a failing dependency is not called in a tight loop. */
const PAUSE_MS = 250

export function runLeaderLoop(ports: LeaderLoopPorts, lease: string, job: LeaderJob): LeaderLoop {
  const { leases, logger, leaseMs } = ports
  const sleeper = new Sleeper()
  let isStopping = false
  const isWanted = (): boolean => job.isWanted?.() ?? true
  let fence: Fence | null = null

  async function own(owned: Fence): Promise<void> {
    let renewed = Promise.resolve()
    const renewal = setInterval(() => {
      renewed = renew(owned)
    }, leaseMs / 3)
    try {
      await job.start?.(owned)
      while (!isStopping && isWanted() && fence === owned) await sleeper.sleep(await job.step(owned))
      if (fence === owned) await job.finish?.(owned)
    } finally {
      clearInterval(renewal)
      // A renewal in flight would otherwise acquire the lease again after its release.
      await renewed
    }
  }

  async function renew(owned: Fence): Promise<void> {
    try {
      if (await leases.renew(owned)) return
      if (fence === owned) fence = null
      sleeper.wake()
    } catch (err) {
      logger.warn({ lease, err }, 'lease renewal failed')
    }
  }

  async function run(): Promise<void> {
    while (!isStopping) {
      try {
        if (isWanted()) fence ??= await leases.acquire(lease)
        if (fence === null) await sleeper.sleep(leaseMs / LOOKS)
        else await own(fence)
        // It is wanted no more, or it was not at the end of a step.
        if (fence !== null && !isStopping) await giveBack(fence)
      } catch (err) {
        job.reset?.()
        if (err instanceof LeaseLost) fence = null
        logger.error({ lease, err }, 'step failed; will retry')
        await sleeper.sleep(PAUSE_MS)
      }
      if (fence === null) job.reset?.()
    }
    if (fence !== null) await giveBack(fence)
  }

  async function giveBack(owned: Fence): Promise<void> {
    await leases
      .release(owned)
      .catch((err: unknown) => logger.warn({ lease, err }, 'lease release failed; it expires by itself'))
    fence = null
  }

  const running = run()
  return {
    name: lease,
    wake: () => sleeper.wake(),
    isLeader: () => fence !== null,
    async stop() {
      isStopping = true
      sleeper.wake()
      await running
    },
  }
}

/** A pause that a wake-up ends. A wake-up before the pause skips it. */
export class Sleeper {
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
