/** Counts failed credentials per network address. An address with too many of them must wait, before anything is looked up or verified. */
import type { Clock } from '../../service/clock.ts'
import { ApiError } from '../errors.ts'
import { networkOf } from '../http/network.ts'
import type { CountRequest } from '../ports.ts'

export interface FailedCredentials {
  /** Throws RATE_LIMITED while the address must wait. */
  check(address: string): void
  count(address: string): Promise<void>
}

export interface FailureLimit {
  readonly most: number
  readonly windowMs: number
}

/** Addresses that must wait, at most. The oldest are forgotten first; their next failure is counted again. */
const MAX_ADDRESSES = 100_000

export function createFailedCredentials(
  { clock, count }: { readonly clock: Clock; readonly count: CountRequest },
  { most, windowMs }: FailureLimit,
): FailedCredentials {
  const waiting = new Map<string, number>()
  return {
    check(address) {
      const key = networkOf(address)
      const until = waiting.get(key)
      if (until === undefined) return
      const rest = until - clock.now()
      if (rest <= 0) return void waiting.delete(key)
      const expected = `at most ${most} failed credentials in ${windowMs / 1000} s`
      throw new ApiError(
        'RATE_LIMITED',
        { scope: 'failed_credentials', expected },
        String(Math.ceil(rest / 1000)),
      )
    },
    async count(address) {
      const key = networkOf(address)
      const { current, ttl } = await count(`failures:${key}`, windowMs)
      if (current < most) return
      waiting.delete(key)
      if (waiting.size >= MAX_ADDRESSES) waiting.delete(waiting.keys().next().value as string)
      waiting.set(key, clock.now() + ttl)
    },
  }
}
