/** Redis for tests: the server at REDIS_URL, with one numbered database per test file. */
import { Redis } from 'ioredis'

/** For the title of every suite that needs Redis: it contains the reason if the suite is skipped. */
export const ON_REDIS = `on Redis${process.env.REDIS_URL ? '' : ' (skipped: REDIS_URL is not set)'}`

/** The URL of one database of the test server; null without REDIS_URL. */
export function redisUrl(database: number): string | null {
  const server = process.env.REDIS_URL
  if (!server) return null
  const url = new URL(server)
  url.pathname = `/${database}`
  return url.toString()
}

/** Deletes all data of the database and returns a connection to it. */
export async function emptyRedis(url: string): Promise<Redis> {
  const redis = new Redis(url)
  await redis.flushdb()
  return redis
}
