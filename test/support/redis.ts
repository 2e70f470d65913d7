/** Redis for tests: the one that REDIS_URL names, a numbered database of it per test file. */
import { Redis } from 'ioredis'

/** Stands in the title of every suite that needs Redis, so that a skipped one says why. */
export const ON_REDIS = `on Redis${process.env.REDIS_URL ? '' : ' (skipped: REDIS_URL is not set)'}`

/** The address of one database of the test server; null where there is no server. */
export function redisUrl(database: number): string | null {
  const server = process.env.REDIS_URL
  if (!server) return null
  const url = new URL(server)
  url.pathname = `/${database}`
  return url.toString()
}

/** A connection for the test itself, to an empty database. */
export async function emptyRedis(url: string): Promise<Redis> {
  const redis = new Redis(url)
  await redis.flushdb()
  return redis
}
