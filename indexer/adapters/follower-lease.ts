/** Decides which process follows the chain: the owner of a lease, which another process acquires soon after the owner stopped to renew it. */
import type { Fence } from '../../db/fence.ts'
import type { Leases } from '../../db/leases.ts'

const NAME = 'follower'
/** Renewals within the life of the lease. */
const RENEWALS = 3

export interface FollowerLeaseOptions {
  readonly leases: Leases
  /** The life of a lease of `leases`. */
  readonly lifeMs: number
  readonly onError: (error: Error) => void
}

export class FollowerLease {
  readonly #options: FollowerLeaseOptions
  #fence: Fence | null = null
  #timer: NodeJS.Timeout | undefined
  #renewal: Promise<void> = Promise.resolve()

  constructor(options: FollowerLeaseOptions) {
    this.#options = options
  }

  /** Acquires the lease if it is free, and then renews it. Returns true while this process owns it. */
  async isHeld(): Promise<boolean> {
    if (this.#fence !== null) return true
    const { leases, lifeMs } = this.#options
    this.#fence = await leases.acquire(NAME)
    if (this.#fence === null) return false
    clearInterval(this.#timer)
    this.#timer = setInterval(() => {
      this.#renewal = this.#renew()
    }, lifeMs / RENEWALS)
    return true
  }

  /** Another process can acquire the lease at once. */
  async release(): Promise<void> {
    clearInterval(this.#timer)
    // A renewal in flight would otherwise acquire the lease again.
    await this.#renewal
    const fence = this.#fence
    this.#fence = null
    if (fence !== null) await this.#options.leases.release(fence).catch(this.#options.onError)
  }

  async #renew(): Promise<void> {
    const fence = this.#fence
    if (fence === null) return
    try {
      if (!(await this.#options.leases.renew(fence))) this.#fence = null
    } catch (error) {
      this.#options.onError(error as Error)
    }
  }
}
