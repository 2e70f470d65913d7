/** At most two large pages of an account, or of an address without one, are read at a time: their rows are held in memory together. */
import type { FastifyInstance } from 'fastify'
import { ApiError } from '../errors.ts'
import { Counts } from './counts.ts'
import { networkOf } from './network.ts'

/** Rows of a page beyond which it is large. */
const LARGE = 100
const MOST = 2

export function boundPages(app: FastifyInstance): void {
  const pages = new Counts<string>()
  app.addHook('preHandler', async ({ query, caller, ip }, reply) => {
    const { limit } = (query ?? {}) as { readonly limit?: unknown }
    if (typeof limit !== 'number' || limit <= LARGE) return
    const key = caller === null ? networkOf(ip) : String(caller.userId)
    if (pages.of(key) >= MOST) {
      const expected = `at most ${MOST} pages of more than ${LARGE} rows at a time`
      throw new ApiError('LARGE_PAGE_LIMIT', { field: 'limit', expected, received: limit }, '1')
    }
    pages.add(key, 1)
    let isRead = false
    const read = (): void => {
      if (!isRead) pages.add(key, -1)
      isRead = true
    }
    reply.raw.once('finish', read).once('close', read)
  })
}
