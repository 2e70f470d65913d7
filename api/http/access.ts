/** Authentication and rate limits, checked for every route before its body is read. */
import { normalizeIP } from '@fastify/rate-limit'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Authenticate } from '../auth/authenticator.ts'
import type { Caller } from '../auth/caller.ts'
import type { Limits } from '../config.ts'
import { ApiError } from '../errors.ts'

export type Bucket = 'reads' | 'orders' | 'batches' | 'cancels' | 'faucet'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** `user`: the caller must be authenticated. `internal`: probes, without rate limits. */
    readonly access?: 'public' | 'user' | 'internal'
    readonly bucket?: Bucket
    /** A POST that only computes: it has no effect, and its errors have no outcome. */
    readonly readOnly?: boolean
  }
  interface FastifyRequest {
    caller: Caller | null
  }
}

/** The caller of a route with `access: 'user'`. */
export function callerOf(request: FastifyRequest): Caller {
  if (request.caller === null) throw new ApiError('CREDENTIAL_MISSING')
  return request.caller
}

type Limiter = ReturnType<FastifyInstance['createRateLimit']>

function limiters(app: FastifyInstance, limits: Limits) {
  const timeWindow = limits.windowSeconds * 1000
  const limiter = (perSecond: number, keyGenerator: (request: FastifyRequest) => string): Limiter =>
    app.createRateLimit({ max: perSecond * limits.windowSeconds, timeWindow, keyGenerator })
  const ofAddress = (name: string): Limiter =>
    limiter(limits.address, ({ ip }) => `${name}:${normalizeIP(ip)}`)
  const ofCaller = (name: Bucket): Limiter =>
    limiter(limits[name], ({ caller, ip }) => `${name}:${caller ? caller.userId : normalizeIP(ip)}`)
  return {
    // Cancels have a limit of their own, so that other requests of an address cannot exhaust it.
    address: { cancels: ofAddress('address-cancels'), others: ofAddress('address') },
    reads: ofCaller('reads'),
    orders: ofCaller('orders'),
    batches: ofCaller('batches'),
    cancels: ofCaller('cancels'),
    faucet: ofCaller('faucet'),
  }
}

async function spend(
  limiter: Limiter,
  request: FastifyRequest,
  reply: FastifyReply,
  scope: string,
): Promise<void> {
  const state = await limiter(request)
  if (state.isAllowed) return
  reply.header('ratelimit-limit', state.max)
  reply.header('ratelimit-remaining', Math.max(0, state.remaining))
  reply.header('ratelimit-reset', state.ttlInSeconds)
  if (!state.isExceeded) return
  const expected = `at most ${state.max} requests in ${state.timeWindow / 1000} s`
  throw new ApiError('RATE_LIMITED', { scope, expected }, String(state.ttlInSeconds))
}

export interface AccessPorts {
  readonly authenticate: Authenticate
  readonly limits: Limits
}

export function controlAccess(app: FastifyInstance, { authenticate, limits }: AccessPorts): void {
  const limiter = limiters(app, limits)
  app.decorateRequest('caller', null)
  app.addHook('onRequest', async (request, reply) => {
    const { access = 'public', bucket = 'reads' } = request.routeOptions.config
    if (access === 'internal') return
    await spend(limiter.address[bucket === 'cancels' ? 'cancels' : 'others'], request, reply, 'address')
    if (access === 'user') request.caller = await authenticate(request.headers.authorization)
    await spend(limiter[bucket], request, reply, bucket)
  })
  // On every path with `:user_id` the id must be the caller's own.
  app.addHook('preHandler', async ({ routeOptions, params, caller }) => {
    if (routeOptions.config.access !== 'user') return
    const { user_id: userId } = params as { user_id?: number }
    if (userId !== undefined && userId !== caller?.userId)
      throw new ApiError('NOT_YOURS', { field: 'user_id', expected: caller?.userId, received: userId })
  })
}
