/**
 * Entity tags and cache headers of cacheable answers. `docs/trade/reads-and-consistency.md` states which answers are
 * immutable.
 */
import { createHash } from 'node:crypto'
import type { FastifyInstance, FastifyReply } from 'fastify'

/** A day: a fork deeper than the configured confirmations would change even what is final. */
const IMMUTABLE = 'public, max-age=86400, immutable'
/** Caches may store the answer, and ask each time whether it is still the same. */
const REVALIDATED = 'public, no-cache'

/**
 * A route with `config.cached` gets an `ETag`, by default the digest of its answer, and returns 304 if `If-None-Match`
 * lists it.
 */
export function cacheAnswers(app: FastifyInstance): void {
  app.addHook('onRoute', ({ config, schema }) => {
    if (config?.cached !== true || schema?.response === undefined) return
    const description = 'The answer with the `ETag` of `If-None-Match` is still current.'
    schema.response = { ...schema.response, 304: { type: 'null', description } }
  })
  app.addHook('onSend', (request, reply, payload, done) => {
    const isCached = request.routeOptions.config.cached === true
    const isComplete = typeof payload === 'string' || Buffer.isBuffer(payload)
    if (!isCached || reply.statusCode !== 200 || !isComplete) return done(null, payload)
    const tag = String(reply.getHeader('etag') ?? tagOf(payload))
    reply.header('etag', tag)
    if (!reply.hasHeader('cache-control')) reply.header('cache-control', REVALIDATED)
    if (!isListed(request.headers['if-none-match'], tag)) return done(null, payload)
    reply.code(304)
    for (const header of ['content-type', 'content-length', 'content-encoding']) reply.removeHeader(header)
    done(null, null)
  })
}

const tagOf = (payload: string | Buffer): string =>
  `"${createHash('sha256').update(payload).digest('base64url').slice(0, 27)}"`

/** The answer to this very request never changes. */
export const markImmutable = (reply: FastifyReply): void => void reply.header('cache-control', IMMUTABLE)

/** Tags are compared weakly: a cache that compresses marks them as weak. */
export const isListed = (header: string | undefined, tag: string): boolean =>
  header !== undefined &&
  (header.trim() === '*' || header.split(',').some((each) => each.trim().replace(/^W\//, '') === tag))
