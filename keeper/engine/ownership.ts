/**
 * The lease, without the database's clock: a candidate takes it after the life plus drift without a renewal, by its own
 * monotonic clock.
 */
import type { Logger } from '../../service/logger.ts'
import type { EngineClock, Lease, LeaseReading, Timer } from './ports.ts'

export interface OwnershipPorts {
  readonly lease: Lease
  readonly clock: EngineClock
  readonly timer: Timer
  readonly logger: Logger
}

export interface OwnershipOptions {
  readonly lifeMs: number
  /** Bound on the difference between the monotonic clocks of two members over one life. */
  readonly driftMs: number
}

export interface LeaseWatch {
  /** Whether the lease may be taken, by this reading and those before. */
  isExpired(reading: LeaseReading): boolean
}

/** A reading that differs from the previous reading starts a new life. */
export function watchLease(clock: EngineClock, { lifeMs, driftMs }: OwnershipOptions): LeaseWatch {
  let last: LeaseReading | null = null
  let since = 0
  return {
    isExpired(reading) {
      const now = clock.monotonic()
      if (last === null || last.token !== reading.token || last.renewals !== reading.renewals) {
        last = reading
        since = now
      }
      return reading.isReleased || now - since >= lifeMs + driftMs
    },
  }
}

/**
 * The owner is safe for one life from when it *sent* a counted renewal: candidates can only have seen that renewal
 * later.
 */
export interface Ownership {
  readonly token: number
  /** Whether no other member can own the journal now. */
  isSafe(): boolean
  /** Runs `work` once the lease is safe: at once, or after the next renewal; never after the ownership has ended. */
  whenSafe(work: () => void): void
  /** Stops renewals. */
  stop(): void
}

/** Renewals per life. */
const RENEWALS = 4

export function keepOwnership(
  { lease, clock, timer, logger }: OwnershipPorts,
  { lifeMs }: OwnershipOptions,
  acquired: { readonly token: number; readonly askedAt: number },
  onLost: () => void,
): Ownership {
  const { token } = acquired
  let safeUntil = acquired.askedAt + lifeMs
  let waiting: (() => void)[] = []
  let isStopped = false
  let cancelTimer = timer.after(lifeMs / RENEWALS, () => void renew())

  const isSafe = (): boolean => !isStopped && clock.monotonic() < safeUntil

  function release(): void {
    const proven = waiting
    waiting = []
    for (const work of proven) work()
  }

  async function renew(): Promise<void> {
    const sentAt = clock.monotonic()
    // Renewals do not wait for each other: one that hangs must not keep the lease from being extended.
    if (!isStopped) cancelTimer = timer.after(lifeMs / RENEWALS, () => void renew())
    try {
      const isOwner = await lease.renew(token)
      if (isStopped) return
      if (!isOwner) {
        stop()
        onLost()
        return
      }
      safeUntil = Math.max(safeUntil, sentAt + lifeMs)
      if (isSafe()) release()
    } catch (err) {
      logger.warn({ err, token }, 'lease not renewed; will retry')
    }
  }

  function stop(): void {
    isStopped = true
    waiting = []
    cancelTimer()
  }

  return {
    token,
    isSafe,
    whenSafe(work) {
      if (isSafe()) work()
      else if (!isStopped) waiting.push(work)
    },
    stop,
  }
}
