/** Counts requests in Redis, so that several processes share their limits; while Redis is unavailable, each process counts by itself. */
import type { FastifyRateLimitStore, FastifyRateLimitStoreCtor } from '@fastify/rate-limit'
import { Redis } from 'ioredis'
import type { Logger } from 'pino'
import type { Clock } from '../../service/clock.ts'

/** Maximum time that a request waits for Redis. */
const REDIS_TIMEOUT_MS = 250
/** After a failure, time without requests to Redis. */
const PAUSE_MS = 1_000
const MAX_KEYS = 100_000

const COUNT = `
  local count = redis.call('INCR', KEYS[1])
  if count == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
  return {count, redis.call('PTTL', KEYS[1])}
`

/** Requests in the current window, and its remaining milliseconds. */
interface Window {
  readonly current: number
  readonly ttl: number
}

type Count = (key: string, windowMs: number) => Window

/** Counts in this process. At most MAX_KEYS keys; the oldest windows are evicted first. */
function createLocalCount(clock: Clock): Count {
  const windows = new Map<string, { count: number; readonly ends: number }>()
  return (key, windowMs) => {
    const now = clock.now()
    let window = windows.get(key)
    if (window === undefined || window.ends <= now) {
      window = { count: 0, ends: now + windowMs }
      windows.delete(key)
      windows.set(key, window)
    }
    window.count++
    if (windows.size > MAX_KEYS) windows.delete(windows.keys().next().value as string)
    return { current: window.count, ttl: window.ends - now }
  }
}

export interface SharedLimits {
  readonly store: FastifyRateLimitStoreCtor
  stop(): void
}

export function createSharedLimits(url: string, clock: Clock, logger: Logger): SharedLimits {
  const redis = new Redis(url, {
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    commandTimeout: REDIS_TIMEOUT_MS,
    keyPrefix: 'clearbatch-limit-',
  })
  redis.on('error', (err) => logger.warn({ err }, 'redis error'))
  const countLocally = createLocalCount(clock)
  let awayUntil = 0
  redis.on('ready', () => {
    awayUntil = 0
  })

  async function count(key: string, windowMs: number): Promise<Window> {
    if (clock.now() < awayUntil) return countLocally(key, windowMs)
    try {
      const [current, ttl] = (await redis.eval(COUNT, 1, key, windowMs)) as [number, number]
      return { current, ttl }
    } catch (err) {
      awayUntil = clock.now() + PAUSE_MS
      logger.warn({ err }, 'redis unavailable; rate limits are counted in this process')
      return countLocally(key, windowMs)
    }
  }

  class Store implements FastifyRateLimitStore {
    incr(key: string, done: (error: Error | null, window?: Window) => void, windowMs: number): void {
      count(key, windowMs).then((window) => done(null, window), done)
    }

    child(): this {
      return this
    }
  }
  return { store: Store, stop: () => redis.disconnect() }
}
