/**
 * Counts requests: in Redis, so that several processes share their limits, or in this process. While Redis is unavailable, each process
 * counts by itself, except for limits that fail closed.
 */
import type { FastifyRateLimitStore, FastifyRateLimitStoreCtor } from '@fastify/rate-limit'
import type { Redis } from 'ioredis'
import type { Logger } from 'pino'
import type { Clock } from '../../service/clock.ts'
import { openRedis } from '../../service/redis.ts'
import type { Config } from '../config.ts'
import { createLocalCounter, type LocalCounter } from '../http/local-counter.ts'
import type { CountedRequests, CountRequest } from '../ports.ts'

/** After a failure, time without requests to Redis. */
const PAUSE_MS = 1_000

const COUNT = `
  if ARGV[3] then
    local sum = tonumber(redis.call('GET', KEYS[1]) or '0') + tonumber(ARGV[2])
    if sum > tonumber(ARGV[3]) then
      local ttl = redis.call('PTTL', KEYS[1])
      return {sum, ttl > 0 and ttl or tonumber(ARGV[1])}
    end
  end
  local count = redis.call('INCRBY', KEYS[1], ARGV[2])
  if count == tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
  return {count, redis.call('PTTL', KEYS[1])}
`
const READ = `
  local count = redis.call('GET', KEYS[1])
  return {tonumber(count or '0'), count and redis.call('PTTL', KEYS[1]) or tonumber(ARGV[1])}
`

interface Counter {
  readonly count: CountRequest
  /** Reads a count without counting a request. */
  readonly read: CountRequest
}

/** Every call fails while Redis is unavailable. For PAUSE_MS after a failure, calls fail without a request to Redis. */
function createRedisCounter(redis: Redis, clock: Clock, logger: Logger): Counter {
  let awayUntil = 0
  redis.on('ready', () => {
    awayUntil = 0
  })
  const run =
    (script: string): CountRequest =>
    async (key, windowMs, cost = 1, most) => {
      if (clock.now() < awayUntil) throw new Error('redis was unavailable a moment ago')
      try {
        const bound = most === undefined ? [] : [most]
        const [current, ttl] = (await redis.eval(script, 1, key, windowMs, cost, ...bound)) as [
          number,
          number,
        ]
        return { current, ttl }
      } catch (err) {
        awayUntil = clock.now() + PAUSE_MS
        logger.warn({ err }, 'redis unavailable; rate limits are counted in this process')
        throw err
      }
    }
  return { count: run(COUNT), read: run(READ) }
}

const inProcess = ({ count, read }: LocalCounter): Counter => ({
  count: async (key, windowMs, cost, most) => count(key, windowMs, cost, most),
  read: async (key, windowMs) => read(key, windowMs),
})

function withFallback(shared: Counter, local: Counter): Counter {
  return {
    count: (key, windowMs, cost, most) =>
      shared.count(key, windowMs, cost, most).catch(() => local.count(key, windowMs, cost, most)),
    read: (key, windowMs) => shared.read(key, windowMs).catch(() => local.read(key, windowMs)),
  }
}

/** Option of a limiter that must fail while the shared store is unavailable, instead of counting in this process. */
export interface FailClosed {
  readonly failClosed?: boolean
}

type Done = (error: Error | null, counted?: CountedRequests) => void

/** The form of a counter that the library calls. */
function storeOf(open: Counter, closed: Counter): FastifyRateLimitStoreCtor {
  return class Store implements FastifyRateLimitStore {
    counter: Counter = open

    incr(key: string, done: Done, windowMs: number): void {
      this.counter.count(key, windowMs).then((counted) => done(null, counted), done)
    }

    read(key: string, done: Done, windowMs: number): void {
      open.read(key, windowMs).then((counted) => done(null, counted), done)
    }

    child(options: object): this {
      const child = new Store()
      child.counter = (options as FailClosed).failClosed ? closed : open
      return child as this
    }
  }
}

export interface LimitStore {
  readonly store: FastifyRateLimitStoreCtor
  readonly count: CountRequest
  readonly read: CountRequest
  /** The counter, if requests are counted in this process only. */
  readonly local: LocalCounter | null
  stop(): void
}

/** Without `redisUrl`, requests are counted in this process only, which is always available. */
export function createLimitStore(
  { redisUrl: url, redisTimeoutMs }: Pick<Config, 'redisUrl' | 'redisTimeoutMs'>,
  clock: Clock,
  logger: Logger,
): LimitStore {
  const counter = createLocalCounter(clock)
  const local = inProcess(counter)
  if (url === null)
    return { store: storeOf(local, local), count: local.count, read: local.read, local: counter, stop() {} }
  const redis = openRedis(url, {
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    commandTimeout: redisTimeoutMs,
    keyPrefix: 'clearbatch-limit-',
  })
  redis.on('error', (err) => logger.warn({ err }, 'redis error'))
  const shared = createRedisCounter(redis, clock, logger)
  const open = withFallback(shared, local)
  return {
    store: storeOf(open, shared),
    count: open.count,
    read: open.read,
    local: null,
    stop: () => redis.disconnect(),
  }
}
