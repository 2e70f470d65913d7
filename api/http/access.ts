/** Authentication, rights and rate limits, checked for every route before its body is read. */
import type { IncomingMessage } from 'node:http'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Authenticate } from '../auth/authenticator.ts'
import type { Caller } from '../auth/caller.ts'
import type { Limits } from '../config.ts'
import { ApiError } from '../errors.ts'
import type { CountRequest, NearestLimit } from '../ports.ts'
import { costOfAnswer, costOfCommandAnswer, costOfStream } from './answer-cost.ts'
import { BUCKETS, type Bucket } from './buckets.ts'
import {
  type CostBudgets,
  createCostBudgets,
  isWithin,
  nearestOfPart,
  type Payer,
  take,
  takeAfterwards,
} from './cost-budget.ts'
import type { LocalCounter } from './local-counter.ts'
import { keptByAddress, networkOf } from './network.ts'
import { isRead } from './operation.ts'
import type { RefusalFloods } from './refusal-flood.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Its answers have an `ETag`, and caches may keep them: see `http/caching.ts`. */
    readonly cached?: boolean
    /**
     * `user`: the caller must be authenticated. `optional`: a credential is checked if the request has one. `internal`: probes, without
     * rate limits.
     */
    readonly access?: 'public' | 'user' | 'optional' | 'internal'
    readonly bucket?: Bucket
    /** A POST that only computes: it has no effect, its errors have no outcome, and read-only keys may call it. */
    readonly readOnly?: boolean
    /** Additional requests of the limit that a body's items or a computation cost. */
    readonly costOfItems?: (body: never) => number
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

/** Caller that a limit counts: of a request, or of an operation on a connection. */
export interface Spender {
  readonly ip: string
  readonly caller: Caller | null
  readonly log: { warn(details: object, message: string): void }
}

/** A stolen API key must not use up the challenges and rotations by which the owner's identity token replaces it. */
function countedAs(bucket: Bucket, { caller, ip }: Pick<Spender, 'ip' | 'caller'>): string {
  if (caller === null) return networkOf(ip)
  return bucket === 'auth' ? `${caller.credential}:${caller.userId}` : String(caller.userId)
}

const keyOf = (name: string, spender: string): string => `${name}:${spender}`

/** Whose budgets a request uses. */
const payerOf = ({ caller, ip }: Pick<Spender, 'ip' | 'caller'>): Payer => {
  const network = networkOf(ip)
  return { account: caller === null ? network : String(caller.userId), network }
}

function limiters(app: FastifyInstance, limits: Limits) {
  const timeWindow = limits.windowSeconds * 1000
  const limiter = (
    perSecond: number,
    keyGenerator: (request: FastifyRequest) => string,
    failClosed: boolean,
  ): Limiter => {
    const options = { max: perSecond * limits.windowSeconds, timeWindow, keyGenerator, failClosed }
    return app.createRateLimit(options)
  }
  const ofAddress = (name: string, perSecond = limits.address): Limiter =>
    limiter(perSecond, ({ ip }) => keyOf(name, networkOf(ip)), name === 'address-auth')
  const ofCaller = (name: Bucket): Limiter =>
    limiter(limits[name], (request) => keyOf(name, countedAs(name, request)), name === 'auth')
  return {
    // Cancels have a limit of their own, so that other requests of an address cannot exhaust it.
    cancelsOfAddress: ofAddress('address-cancels'),
    othersOfAddress: ofAddress('address'),
    authOfAddress: ofAddress('address-auth', limits.authAddress),
    reads: ofCaller('reads'),
    orders: ofCaller('orders'),
    batches: ofCaller('batches'),
    cancels: ofCaller('cancels'),
    faucet: ofCaller('faucet'),
    auth: ofCaller('auth'),
    relays: ofCaller('relays'),
    adjustments: ofCaller('adjustments'),
    proofs: ofCaller('proofs'),
  }
}

type Limiters = ReturnType<typeof limiters>

const LIMIT_HEADERS = ['ratelimit-limit', 'ratelimit-remaining', 'ratelimit-reset'] as const

/** Shows the limit that the next request reaches first. */
function showLimit(reply: FastifyReply, max: number, remaining: number, resetS: number): void {
  const shown = reply.getHeader('ratelimit-remaining')
  if (shown !== undefined && Number(shown) <= remaining) return
  const values = [max, remaining, resetS]
  for (const [at, name] of LIMIT_HEADERS.entries()) reply.header(name, values[at])
}

/** Counts one request; returns the state of the limit, null if there is none. */
async function count(limiter: Limiter, spender: Spender, scope: string) {
  // The library looks for an option of the route.
  const { ip, caller } = spender
  const counted = { ip, caller, routeOptions: { config: {} } } as unknown as FastifyRequest
  const state = await limiter(counted).catch((err: unknown) => {
    spender.log.warn({ err, scope }, 'rate limit cannot be checked')
    throw new ApiError('LIMITS_UNAVAILABLE', { scope }, '2')
  })
  return state.isAllowed ? null : state
}

type Counted = NonNullable<Awaited<ReturnType<typeof count>>>

function rejectExceeded({ isExceeded, max, timeWindow, ttlInSeconds }: Counted, scope: string): void {
  if (!isExceeded) return
  const expected = `at most ${max} requests in ${timeWindow / 1000} s`
  throw new ApiError('RATE_LIMITED', { scope, expected }, String(ttlInSeconds))
}

/** Counts one operation. `reply` shows the limit; null on a connection. */
async function spend(
  limiter: Limiter,
  spender: Spender,
  reply: FastifyReply | null,
  scope: string,
): Promise<void> {
  const state = await count(limiter, spender, scope)
  if (state === null) return
  if (reply !== null) showLimit(reply, state.max, Math.max(0, state.remaining), state.ttlInSeconds)
  rejectExceeded(state, scope)
}

/** The limits of the address, before the credential is checked: the check costs more than they do. */
async function spendOfAddress(
  limiter: Limiters,
  bucket: Bucket,
  spender: Spender,
  reply: FastifyReply | null,
  floods: RefusalFloods,
): Promise<void> {
  const limit = bucket === 'cancels' ? 'cancels' : 'others'
  const ofAddress = limit === 'cancels' ? limiter.cancelsOfAddress : limiter.othersOfAddress
  try {
    await spend(ofAddress, spender, reply, 'address')
  } catch (error) {
    if (reply !== null && error instanceof ApiError && error.code === 'RATE_LIMITED')
      floods.note(limit, spender.ip, 1000 * Number(error.retryAfter))
    throw error
  }
  if (bucket === 'auth') await spend(limiter.authOfAddress, spender, reply, 'address')
}

export interface LimitState {
  readonly bucket: Bucket
  readonly limit: number
  readonly window_seconds: number
  readonly remaining: number
  readonly reset_seconds: number
}

/** The caller's present limits. A call counts as one read and changes no other limit. */
export type LimitsOf = (request: FastifyRequest) => Promise<readonly LimitState[]>

async function limitState(limiter: Limiter, bucket: Bucket, request: FastifyRequest): Promise<LimitState> {
  const state = await limiter(request, { increment: false })
  if (state.isAllowed) throw new ApiError('INTERNAL')
  const { max: limit, timeWindow, remaining, ttlInSeconds: reset_seconds } = state
  return { bucket, limit, window_seconds: timeWindow / 1000, remaining, reset_seconds }
}

/** Requests that are counted before the framework handles them, if limits are counted in this process only. */
export interface LocalLimits {
  /** Counts a request like the framework; null, without counting, if a limit rejects it. */
  count(bucket: Bucket, spender: Pick<Spender, 'ip' | 'caller'>): NearestLimit | null
  /** The framework handles the request, and does not count it again. */
  markCounted(request: IncomingMessage, limit: NearestLimit): void
  countedLimit(request: IncomingMessage): NearestLimit | undefined
}

export function createLocalLimits(local: LocalCounter, limits: Limits): LocalLimits {
  const { windowSeconds } = limits
  const windowMs = windowSeconds * 1000
  const ofAddress = limits.address * windowSeconds
  const budgets = createCostBudgets(limits)
  const counted = new WeakMap<IncomingMessage, NearestLimit>()
  const keysOf = keptByAddress((ip) => {
    const network = networkOf(ip)
    return { cancels: keyOf('address-cancels', network), others: keyOf('address', network) }
  })
  return {
    count(bucket, spender) {
      const keys = keysOf(spender.ip)
      const address = bucket === 'cancels' ? keys.cancels : keys.others
      const account = keyOf(bucket, countedAs(bucket, spender))
      const parts = [
        { key: address, units: 1, most: ofAddress },
        { key: account, units: 1, most: limits[bucket] * windowSeconds },
        ...budgets.partsOf(bucket, payerOf(spender)),
      ]
      if (parts.some(({ key, units, most }) => local.read(key, windowMs).current + units > most)) return null
      return parts
        .map((part) => nearestOfPart(part, local.count(part.key, windowMs, part.units)))
        .reduce(nearer)
    },
    markCounted: (request, limit) => void counted.set(request, limit),
    countedLimit: (request) => counted.get(request),
  }
}

const nearer = (one: NearestLimit, other: NearestLimit): NearestLimit =>
  other.remaining < one.remaining ? other : one

/**
 * Identifies the caller after the limit of anonymous requests has rejected a read, because accounts have limits of
 * their own. The rejection stands if the credential is invalid.
 */
async function callerDespite(refusal: unknown, authenticate: Authenticate, request: FastifyRequest) {
  const { authorization } = request.headers
  const isLimited = refusal instanceof ApiError && refusal.code === 'RATE_LIMITED'
  if (!isLimited || authorization === undefined || !isRead(request)) throw refusal
  return authenticate({ authorization, address: request.ip }).catch(() => Promise.reject(refusal))
}

/** In units of the budget of all limits together. */
export type CostState = Omit<LimitState, 'bucket'>

async function costState(
  { read }: Pick<AccessPorts['requestCounts'], 'read'>,
  { accountBudget, windowMs }: CostBudgets,
  request: FastifyRequest,
): Promise<CostState> {
  const { key, most } = accountBudget(payerOf(request))
  const { current, ttl } = await read(key, windowMs)
  return {
    limit: most,
    window_seconds: windowMs / 1000,
    remaining: Math.max(0, most - current),
    reset_seconds: Math.ceil(ttl / 1000),
  }
}

export interface AccessPorts {
  readonly authenticate: Authenticate
  readonly limits: Limits
  readonly requestCounts: { readonly count: CountRequest; readonly read: CountRequest }
  readonly floods: RefusalFloods
  readonly localLimits: LocalLimits | null
}

export interface Access {
  readonly limitsOf: LimitsOf
  readonly costOf: (request: FastifyRequest) => Promise<CostState>
  /** Counts an operation on a connection like a request: first for its address, then in the bucket. Throws RATE_LIMITED. */
  readonly spend: (bucket: Bucket, spender: Spender) => Promise<void>
  /** Counts an operation's additional cost. It rejects later operations, not the present operation. */
  readonly charge: (bucket: Bucket, spender: Spender, requests: number) => void
}

export function controlAccess(
  app: FastifyInstance,
  { authenticate, limits, requestCounts, floods, localLimits }: AccessPorts,
): Access {
  const limiter = limiters(app, limits)
  const budgets = createCostBudgets(limits)
  const { windowMs } = budgets
  app.decorateRequest('caller', null)
  app.addHook('onRequest', async (request, reply) => {
    const { access = 'public', bucket = 'reads' } = request.routeOptions.config
    if (access === 'internal') return
    const counted = localLimits?.countedLimit(request.raw)
    if (counted !== undefined) return showLimit(reply, counted.max, counted.remaining, counted.resetS)
    await spendOfAddress(limiter, bucket, request, reply, floods)
    const { headers, ip: address } = request
    const isOptional = access === 'optional' && headers.authorization !== undefined
    if (access === 'user' || isOptional)
      request.caller = await authenticate({ authorization: headers.authorization, address })
    // Before the account's limit: a read-only key must not use up requests that it may not make.
    if (request.caller?.scope === 'read' && !isRead(request)) throw new ApiError('READ_ONLY_KEY')
    try {
      await spendOfAccount(bucket, request, reply)
    } catch (error) {
      if (access === 'user' || request.caller !== null) throw error
      request.caller = await callerDespite(error, authenticate, request)
      for (const name of LIMIT_HEADERS) reply.removeHeader(name)
      await spendOfAccount(bucket, request, reply)
    }
  })

  /**
   * Spends the account's limit, its budget, then the address budget, and stops at the first rejection: one account's
   * rejected requests must not use up the share of its address.
   */
  async function spendOfAccount(bucket: Bucket, spender: Spender, reply: FastifyReply | null): Promise<void> {
    await spend(limiter[bucket], spender, reply, bucket)
    for (const part of budgets.partsOf(bucket, payerOf(spender))) {
      const counted = await take(requestCounts.count, part, windowMs)
      const { max, remaining, resetS } = nearestOfPart(part, counted)
      if (reply !== null) showLimit(reply, max, remaining, resetS)
      if (isWithin(part, counted)) continue
      const expected = `at most ${max} requests like this one in ${limits.windowSeconds} s, or fewer beside others`
      throw new ApiError('RATE_LIMITED', { scope: 'cost', expected }, String(resetS))
    }
  }
  const charge: Access['charge'] = (bucket, spender, requests) => {
    if (requests <= 0) return
    const key = keyOf(bucket, countedAs(bucket, spender))
    const parts = budgets.partsOf(bucket, payerOf(spender), requests)
    Promise.all([
      requestCounts.count(key, windowMs, requests),
      ...parts.map((part) => takeAfterwards(requestCounts, part, windowMs)),
    ]).catch((err: unknown) =>
      spender.log.warn({ err, scope: bucket }, 'failed to count the cost of an answer'),
    )
  }
  chargeAnswers(app, charge)
  // On every path with `:user_id` the id must be the caller's own.
  app.addHook('preHandler', async ({ routeOptions, params, caller }) => {
    if (routeOptions.config.access !== 'user') return
    const { user_id: userId } = params as { user_id?: number }
    if (userId !== undefined && userId !== caller?.userId)
      throw new ApiError('NOT_YOURS', { field: 'user_id', expected: caller?.userId, received: userId })
  })
  return {
    limitsOf: (request) => Promise.all(BUCKETS.map((bucket) => limitState(limiter[bucket], bucket, request))),
    costOf: (request) => costState(requestCounts, budgets, request),
    async spend(bucket, spender) {
      await spendOfAddress(limiter, bucket, spender, null, floods)
      await spendOfAccount(bucket, spender, null)
    },
    charge,
  }
}

function chargeAnswers(app: FastifyInstance, charge: Access['charge']): void {
  app.addHook('onSend', (request, reply, payload, done) => {
    const { access, bucket = 'reads', cached, costOfItems } = request.routeOptions.config
    const isText = typeof payload === 'string'
    const isWhole = isText || Buffer.isBuffer(payload)
    const ofItems = request.isCommandRead && costOfItems ? costOfItems(request.body as never) : 0
    // Other streams are the files of the page, which are small.
    if (!isWhole && cached) charge(bucket, request, costOfStream(request, reply))
    if (isWhole && access !== 'internal')
      charge(
        bucket,
        request,
        Math.max(
          ofItems,
          isText ? costOfCommandAnswer(bucket, payload) : costOfAnswer(bucket, payload.length),
        ),
      )
    done(null, payload)
  })
}
