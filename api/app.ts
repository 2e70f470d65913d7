/** Builds the HTTP application from its ports: plugins, hooks and routes. */
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import cors from '@fastify/cors'
import proxyAddr from '@fastify/proxy-addr'
import rateLimit, { type FastifyRateLimitStoreCtor } from '@fastify/rate-limit'
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import Fastify, { type FastifyServerOptions, LogController } from 'fastify'
import type { Db } from '../db/client.ts'
import type { CalendarCache } from '../db/trading-calendars.ts'
import type { Clock } from '../service/clock.ts'
import type { Readiness } from '../service/health.ts'
import type { Spans } from '../service/spans.ts'
import { accountEquityRoutes } from './account-equity/route.ts'
import { accountPnlRoutes } from './account-pnl/route.ts'
import { accountRoutes } from './accounts/route.ts'
import type { Adjustments } from './adjustments/adjustments.ts'
import { adjustmentRoutes } from './adjustments/route.ts'
import { announcementRoutes } from './announcements/route.ts'
import type { ArrivalTimes } from './arrival-times.ts'
import { proofRoutes } from './auctions/proof-route.ts'
import { auctionRoutes } from './auctions/route.ts'
import type { Authenticate } from './auth/authenticator.ts'
import type { Challenges } from './auth/challenges.ts'
import type { FailedCredentials } from './auth/failed-credentials.ts'
import type { KeyCreation } from './auth/key-creation.ts'
import { authRoutes } from './auth/route.ts'
import { builderRoutes } from './builders/route.ts'
import type { CancelSwitch } from './cancel-switch/cancel-switch.ts'
import { cancelSwitchRoutes } from './cancel-switch/route.ts'
import { candleRoutes } from './candles/route.ts'
import type { Config, TrustedProxies } from './config.ts'
import { ApiError } from './errors.ts'
import { exchangeRoutes } from './exchange/route.ts'
import type { Faucet } from './faucet/faucet.ts'
import { faucetRoutes } from './faucet/route.ts'
import { fillRoutes } from './fills/route.ts'
import { fundingRoutes } from './funding/route.ts'
import { historyRoutes } from './history/route.ts'
import { type Access, controlAccess, createLocalLimits, type LocalLimits } from './http/access.ts'
import { type AnswerForm, answerInDemand } from './http/answers-in-demand.ts'
import { cacheAnswers } from './http/caching.ts'
import { createConnections } from './http/connections.ts'
import { loggedRequest } from './http/echo.ts'
import {
  answerUnreadable,
  BODY_LIMIT,
  describeErrors,
  handleErrors,
  markReadCommands,
} from './http/errors.ts'
import { parseJson } from './http/json.ts'
import type { LocalCounter } from './http/local-counter.ts'
import { describe } from './http/openapi.ts'
import { collectLanes, openOrderLane } from './http/order-lane.ts'
import { boundPages } from './http/page-limit.ts'
import { probeRoutes } from './http/probes.ts'
import { answerFloods, createRefusalFloods } from './http/refusal-flood.ts'
import { addSecurityHeaders } from './http/security-headers.ts'
import { createSharedAnswers, type ShareAnswer } from './http/shared-answers.ts'
import { stampArrivals } from './http/stamp-arrivals.ts'
import type { App } from './http/types.ts'
import { compileValidator } from './http/validation.ts'
import { liquidationRoutes } from './liquidations/route.ts'
import type { Connections } from './live/connections.ts'
import { acceptWebSockets, liveRoute } from './live/route.ts'
import type { MarginNonces } from './margin-nonces/margin-nonces.ts'
import { marginNonceRoutes } from './margin-nonces/route.ts'
import { marketStatsRoutes } from './market-stats/route.ts'
import type { MarketDirectory } from './markets/market-directory.ts'
import { marketRoutes } from './markets/route.ts'
import type { Metrics } from './metrics.ts'
import { openInterestRoutes } from './open-interest/route.ts'
import { operateRoutes } from './operate/route.ts'
import { oracleRoutes } from './oracle/route.ts'
import { orderBookRoutes } from './order-book/route.ts'
import type { OrderCommands } from './order-entry/order-commands.ts'
import { orderEntryRoutes } from './order-entry/route.ts'
import { orderEventRoutes } from './order-events/route.ts'
import { orderRoutes } from './orders/route.ts'
import { servePage } from './page/serve.ts'
import type { CountRequest, Notifications } from './ports.ts'
import { positionHistoryRoutes } from './position-history/route.ts'
import { positionRoutes } from './positions/route.ts'
import type { ReadAfter } from './read-after/read-after.ts'
import { riskRoutes } from './risk/route.ts'
import { sessionKeyRoutes } from './session-keys/route.ts'
import type { SessionKeys } from './session-keys/session-keys.ts'
import { sizingRoutes } from './sizing/route.ts'
import type { Sizing } from './sizing/sizing.ts'
import { transactionRoutes } from './transactions/route.ts'
import { udfRoutes } from './udf/route.ts'
import { closed } from './wire/schema.ts'
import { withdrawalRoutes } from './withdrawals/route.ts'

/** The counters of the limits. */
export interface RequestCounts {
  readonly store: FastifyRateLimitStoreCtor
  readonly count: CountRequest
  readonly read: CountRequest
  /** The counter, if requests are counted in this process only. */
  readonly local: LocalCounter | null
}

export interface AppPorts {
  readonly config: Config
  readonly logger: NonNullable<FastifyServerOptions['loggerInstance']>
  readonly clock: Clock
  readonly arrivals: ArrivalTimes
  /** Null: no spans. */
  readonly spans: Spans | null
  readonly db: Db
  readonly requestCounts: RequestCounts
  readonly metrics: Metrics
  readonly authenticate: Authenticate
  readonly failures: FailedCredentials
  readonly challenges: Challenges
  readonly keyCreation: KeyCreation
  readonly notifications: Pick<Notifications, 'announce'>
  readonly markets: MarketDirectory
  readonly calendars: CalendarCache
  readonly readAfter: ReadAfter
  readonly commands: OrderCommands
  readonly connections: Connections
  readonly sizing: Sizing
  readonly cancelSwitch: CancelSwitch
  readonly adjustments: Adjustments
  readonly faucet: Faucet | null
  readonly sessionKeys: SessionKeys
  readonly marginNonces: MarginNonces
  readonly readiness: () => Promise<Readiness>
  readonly isStopping: () => boolean
}

/** Response headers that pages of other origins may read, besides the headers that CORS always permits. */
export const EXPOSED = [
  'ETag',
  'RateLimit-Limit',
  'RateLimit-Remaining',
  'RateLimit-Reset',
  'Retry-After',
  'X-Request-Id',
]

const NO_QUERY = closed({})

export async function buildApp(ports: AppPorts): Promise<App> {
  const { config, logger, requestCounts } = ports
  const genReqId = requestIds()
  const trustProxy = trustOf(config.trustProxy)
  const connections = createConnections(
    config.connections,
    trustProxy,
    genReqId,
    config.public.tls,
    ports.isStopping,
  )
  const app: App = Fastify({
    loggerInstance: logger.child({}, { serializers: { req: loggedRequest } }),
    logController: new LogController({ disableRequestLogging: !config.logRequests }),
    trustProxy,
    bodyLimit: BODY_LIMIT,
    genReqId,
    routerOptions: { ignoreTrailingSlash: true },
    frameworkErrors: answerUnreadable as never,
    ...connections.serverOptions,
  }).withTypeProvider<TypeBoxTypeProvider>()
  app.setValidatorCompiler(compileValidator)
  readBodies(app)
  closeQueries(app)
  describeErrors(app as never)
  handleErrors(app as never)
  await protect(app, ports)
  stampArrivals(app, ports.arrivals, ports.spans)
  const lanes = collectLanes(app)
  await acceptWebSockets(app)
  observe(app, ports.metrics)
  cacheAnswers(app as never)
  // With Redis, counting waits; requests are logged by the framework.
  const localLimits =
    requestCounts.local === null || config.logRequests
      ? null
      : createLocalLimits(requestCounts.local, config.limits)
  const addressOf = addressBehind(trustProxy)
  const { isRefused } = connections.limit
  const share = shareAnswers(app, ports, localLimits, { addressOf, nextId: genReqId, isRefused })
  const floods = createRefusalFloods(config.limits.address * config.limits.windowSeconds)
  answerFloods(app, { floods, addressOf, nextId: genReqId })
  connections.guard(app)
  const access = controlAccess(app as never, {
    authenticate: ports.authenticate,
    limits: config.limits,
    requestCounts,
    floods,
    localLimits,
  })
  if (localLimits !== null)
    openOrderLane(app, lanes, {
      limits: localLimits,
      authenticate: ports.authenticate,
      charge: access.charge,
      addressOf,
      nextId: genReqId,
      connections: connections.limit,
      metrics: ports.metrics,
      arrivals: ports.arrivals,
    })
  boundPages(app as never)
  markReadCommands(app as never)
  await describe(app as never)

  addRoutes(app, ports, { share, access, release: connections.limit.release })
  if (config.page !== null) await servePage(app as never, config.page)
  return app
}

interface RoutePorts {
  readonly share: ShareAnswer
  readonly access: Access
  readonly release: (socket: Socket) => void
}

function addRoutes(app: App, ports: AppPorts, { share, access, release }: RoutePorts): void {
  probeRoutes(app, ports)
  exchangeRoutes(app, ports)
  announcementRoutes(app, ports)
  builderRoutes(app, ports)
  marketRoutes(app, { ...ports, share })
  orderBookRoutes(app, { ...ports, share })
  auctionRoutes(app, ports)
  candleRoutes(app, ports)
  proofRoutes(app, ports)
  marketStatsRoutes(app, { ...ports, share })
  openInterestRoutes(app, ports)
  udfRoutes(app, ports)
  fundingRoutes(app, ports)
  historyRoutes(app, ports)
  oracleRoutes(app, ports)
  riskRoutes(app, ports)
  liquidationRoutes(app, ports)
  authRoutes(app, { ...ports, limitsOf: access.limitsOf, costOf: access.costOf })
  accountRoutes(app, ports)
  transactionRoutes(app, ports)
  withdrawalRoutes(app, ports)
  positionHistoryRoutes(app, ports)
  accountPnlRoutes(app, ports)
  accountEquityRoutes(app, ports)
  positionRoutes(app, ports)
  orderRoutes(app, ports)
  orderEventRoutes(app, ports)
  fillRoutes(app, ports)
  orderEntryRoutes(app, ports)
  sizingRoutes(app, ports)
  cancelSwitchRoutes(app, ports)
  adjustmentRoutes(app, ports)
  faucetRoutes(app, ports)
  sessionKeyRoutes(app, ports)
  marginNonceRoutes(app, ports)
  operateRoutes(app, ports)
  liveRoute(app, { ...ports, access, release })
}

/** Fastify ignores a number of proxies, because it cannot know whether clients reach the api past them; here the operator decides. */
const trustOf = (proxies: TrustedProxies): ((address: string, hop: number) => boolean) =>
  typeof proxies === 'number' ? (_address, hop) => hop < proxies : proxyAddr.compile([...proxies])

/** The address of a client before the framework has determined it. */
type AddressOf = (request: IncomingMessage) => string | undefined

const addressBehind =
  (trustProxy: ReturnType<typeof trustOf>): AddressOf =>
  (request) =>
    request.headers['x-forwarded-for'] === undefined
      ? request.socket.remoteAddress
      : proxyAddr(request, trustProxy)

interface SharedPorts {
  readonly addressOf: AddressOf
  readonly nextId: () => string
  readonly isRefused: (request: IncomingMessage) => boolean
}

/** Answers in demand bypass the framework, if public reads can be counted without it. */
function shareAnswers(
  app: App,
  { metrics }: AppPorts,
  limits: LocalLimits | null,
  { addressOf, nextId, isRefused }: SharedPorts,
): ShareAnswer {
  const answers = createSharedAnswers<AnswerForm>()
  if (limits !== null) answerInDemand(app, { answers, limits, addressOf, nextId, metrics, isRefused })
  return answers.share
}

/** Request ids, unique across processes and restarts. */
function requestIds(): () => string {
  const process = Math.floor(Math.random() * 36 ** 6).toString(36)
  let count = 0
  return () => `${process}-${(++count).toString(36)}`
}

function readBodies(app: App): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'string' }, ({ headers }, body, done) => {
    try {
      const { 'content-encoding': received = 'identity' } = headers
      if (received !== 'identity')
        throw new ApiError('UNSUPPORTED_ENCODING', {
          field: 'content-encoding',
          expected: 'identity',
          received,
        })
      done(null, parseJson(body as string))
    } catch (error) {
      done(error as Error)
    }
  })
  // A POST without a body is treated as an empty object.
  app.addHook('preValidation', (request, _reply, done) => {
    if (request.body === undefined && request.method === 'POST') request.body = {}
    done()
  })
}

/** Rejects query fields on routes without a query schema: a caller of `?dry_run=true` must not assume a dry run. */
function closeQueries(app: App): void {
  app.addHook('onRoute', ({ schema }) => {
    if (schema !== undefined && !schema.hide) schema.querystring ??= NO_QUERY
  })
}

async function protect(app: App, { config, requestCounts }: AppPorts): Promise<void> {
  addSecurityHeaders(app)
  await app.register(cors, {
    origin: config.corsOrigins,
    methods: ['GET', 'HEAD', 'POST', 'DELETE'],
    exposedHeaders: EXPOSED,
    maxAge: 600,
    strictPreflight: false,
  })
  app.addHook('onRequest', ({ headers }, reply, done) => {
    // Only a browser that sends `Origin` reads it.
    if (headers.origin === undefined) reply.removeHeader('access-control-expose-headers')
    done()
  })
  await app.register(rateLimit, { global: false, store: requestCounts.store })
}

function observe(app: App, metrics: Metrics): void {
  app.addHook('onRequest', (request, reply, done) => {
    reply.header('x-request-id', request.id)
    done()
  })
  app.addHook('onResponse', (request, reply, done) => {
    const route = request.routeOptions.url ?? 'unknown'
    metrics.request(request.method, route, reply.statusCode, reply.elapsedTime / 1000)
    done()
  })
}
