/**
 * Answers order commands before the framework, whose hooks, routing and replies cost as much as the rest of a
 * placement.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FastifyContextConfig, FastifyRequest, RouteOptions } from 'fastify'
import type { ArrivalTimes } from '../arrival-times.ts'
import type { Authenticate } from '../auth/authenticator.ts'
import type { Caller } from '../auth/caller.ts'
import { type ApiError, errorBody } from '../errors.ts'
import type { Metrics } from '../metrics.ts'
import type { NearestLimit } from '../ports.ts'
import type { Access, LocalLimits } from './access.ts'
import { costOfCommandAnswer } from './answer-cost.ts'
import { beforeFramework, headersOf, type Listener, ownHeaders } from './before-framework.ts'
import type { Bucket } from './buckets.ts'
import type { ConnectionLimit } from './connection-limit.ts'
import { BODY_LIMIT, catalogued, publishError } from './errors.ts'
import { parseJson } from './json.ts'
import { type Problem, validationError } from './problems.ts'
import type { App } from './types.ts'
import { compileValidator } from './validation.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Its handler reads only `caller`, `params` and `body` of the request, and returns the answer. */
    readonly lane?: boolean
  }
}

export interface LanePorts {
  readonly limits: LocalLimits
  readonly authenticate: Pick<Authenticate, 'known'>
  readonly charge: Access['charge']
  /** Undefined once the connection has ended. */
  readonly addressOf: (request: IncomingMessage) => string | undefined
  readonly nextId: () => string
  /** The framework rejects requests of a refused connection, and those of a client with too many unanswered requests. */
  readonly connections: Pick<ConnectionLimit, 'isRefused' | 'isFull' | 'countUntilAnswered'>
  readonly metrics: Pick<Metrics, 'request'>
  readonly arrivals: Pick<ArrivalTimes, 'now'>
}

type Check = (value: unknown) => { readonly value?: unknown; readonly error?: readonly Problem[] }

type LaneRoute = RouteOptions & { readonly config: FastifyContextConfig }

interface Lane {
  readonly route: LaneRoute
  readonly handle: (request: FastifyRequest) => Promise<unknown>
  readonly url: string
  readonly bucket: Bucket
  readonly bodyLimit: number
  /** Name of the parameter at the end of the path; null if the path has none. */
  readonly param: string | null
  readonly checkParams: Check | null
  readonly checkBody: Check
  /** Headers of an ordinary answer; null before the framework has sent one. */
  headers: readonly string[] | null
}

/** A request of which everything but the body is checked. */
interface Admitted {
  readonly lane: Lane
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly params: unknown
  readonly caller: Caller
  readonly ip: string
  readonly id: string
  readonly limit: NearestLimit
  readonly startedAt: number
  readonly arrivedAt: number
}

/** The lanes of all routes that are added after this call. Call it before plugins that replace handlers. */
export function collectLanes(app: App): Lanes {
  const lanes = new Lanes()
  app.addHook('onRoute', (route) => {
    if (route.config?.lane === true) lanes.add(route as LaneRoute)
  })
  return lanes
}

/** Call it after the hooks that set headers are added. */
export function openOrderLane(app: App, lanes: Lanes, ports: LanePorts): void {
  app.addHook('onSend', ({ routeOptions: { config, url }, headers }, reply, payload, done) => {
    if (config.lane === true && reply.statusCode === 200 && headers.origin === undefined)
      lanes.keepHeaders(url as string, () => headersOf(reply))
    done(null, payload)
  })
  let isClosing = false
  app.addHook('preClose', (done) => {
    isClosing = true
    done()
  })
  const execute = createExecution(app, ports, () => isClosing)
  beforeFramework(
    app,
    (route): Listener =>
      (request, response) => {
        const admitted = isClosing ? null : admit(lanes, ports, request, response)
        if (admitted === null) route(request, response)
        else readBody(request, (text) => void execute(admitted, text))
      },
  )
}

export class Lanes {
  readonly #byUrl = new Map<string, Lane>()

  add(route: LaneRoute): void {
    const { url, config, schema = {}, handler, bodyLimit = BODY_LIMIT } = route
    const [path, param = null] = url.split(':') as [string, string?]
    const compile = (part: 'params' | 'body'): Check =>
      compileValidator({ schema: schema[part], method: 'POST', url, httpPart: part } as never) as never
    this.#byUrl.set(path, {
      route,
      url,
      bodyLimit,
      param,
      handle: handler as unknown as Lane['handle'],
      bucket: config.bucket ?? 'orders',
      checkParams: param === null ? null : compile('params'),
      checkBody: compile('body'),
      headers: null,
    })
  }

  keepHeaders(url: string, headers: () => string[]): void {
    const lane = this.#byUrl.get(url.split(':')[0] as string)
    if (lane !== undefined) lane.headers ??= headers()
  }

  /** The lane of the path with its parameters; null for paths that the framework handles. */
  find(path: string): { readonly lane: Lane; readonly params: unknown } | null {
    const lane = this.#byUrl.get(path)
    if (lane !== undefined) return lane.param === null ? { lane, params: {} } : null
    const end = path.lastIndexOf('/') + 1
    const parent = this.#byUrl.get(path.slice(0, end))
    if (parent === undefined || parent.param === null) return null
    const { error, value } = parent.checkParams?.({ [parent.param]: path.slice(end) }) ?? {}
    return error === undefined ? { lane: parent, params: value } : null
  }
}

/** In these a path, body or answer has another form. */
const isPlain = ({ method, url, headers }: IncomingMessage): boolean =>
  method === 'POST' &&
  !/[?%#]/.test(url as string) &&
  headers.host !== undefined &&
  headers.origin === undefined &&
  headers.expect === undefined &&
  headers['transfer-encoding'] === undefined &&
  headers['content-encoding'] === undefined

const JSON_TYPE = /^application\/json(?:; ?charset=utf-8)?$/i

function hasBodyOf({ headers }: IncomingMessage, bodyLimit: number): boolean {
  const length = Number(headers['content-length'] ?? 0)
  return length === 0 || (length <= bodyLimit && JSON_TYPE.test(headers['content-type'] ?? ''))
}

/** Null for a request that is left to the framework, and is not counted. */
/**
 * The checks and their order equal the framework's hooks. A request that needs more, for example a credential lookup or
 * a rate limit rejection, goes to the framework.
 */
function admit(
  lanes: Lanes,
  { limits, authenticate, addressOf, nextId, connections, arrivals }: LanePorts,
  request: IncomingMessage,
  response: ServerResponse,
): Admitted | null {
  const startedAt = performance.now()
  const arrivedAt = arrivals.now()
  const found = isPlain(request) && !connections.isRefused(request) ? lanes.find(request.url as string) : null
  if (found === null || found.lane.headers === null || !hasBodyOf(request, found.lane.bodyLimit)) return null
  const { lane, params } = found
  const ip = addressOf(request)
  if (ip === undefined || connections.isFull(request, ip)) return null
  const caller = authenticate.known({ authorization: request.headers.authorization, address: ip })
  if (caller === null || caller.scope === 'read') return null
  const limit = limits.count(lane.bucket, { ip, caller })
  if (limit === null) return null
  connections.countUntilAnswered(request, response, ip)
  const id = nextId()
  return { lane, request, response, params, caller, ip, id, limit, startedAt, arrivedAt }
}

/** A body that does not arrive has no answer: the server ends its connection. */
function readBody(request: IncomingMessage, read: (text: string) => void): void {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () =>
    read((chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)).toString()),
  )
}

function bodyOf({ checkBody, route }: Lane, text: string): unknown {
  const body = parseJson(text)
  const { error, value } = checkBody(body)
  if (error !== undefined) throw validationError([...error], body, route.schema?.body)
  return value
}

/** The answer to a request. `cost`: additional requests of its limit. */
interface LaneAnswer {
  readonly status: number
  readonly text: string
  readonly headers: readonly string[]
  readonly cost: number
}

function createExecution(app: App, { charge, metrics }: LanePorts, isClosing: () => boolean) {
  function send(admitted: Admitted, { status, text, headers }: LaneAnswer): void {
    const { lane, response, limit, id, startedAt } = admitted
    const own = ownHeaders(Buffer.byteLength(text), { id, ...limit })
    const closing = isClosing() ? ['connection', 'close'] : []
    response.writeHead(status, [...(lane.headers as readonly string[]), ...own, ...headers, ...closing])
    response.end(text)
    metrics.request('POST', lane.url, status, (performance.now() - startedAt) / 1000)
  }

  function errorAnswer({ lane, id }: Admitted, error: ApiError, cost: number): LaneAnswer {
    publishError(lane.route, error)
    const headers = error.retryAfter === undefined ? [] : ['retry-after', error.retryAfter]
    const text = JSON.stringify(errorBody(error, id, false))
    return {
      status: error.status,
      text,
      headers,
      cost: Math.max(cost, costOfCommandAnswer(lane.bucket, text)),
    }
  }

  async function answerOf(admitted: Admitted, text: string): Promise<LaneAnswer> {
    const { lane, caller, params, id, arrivedAt, request } = admitted
    let isCommandRead = false
    let cost = 0
    try {
      const body = bodyOf(lane, text)
      isCommandRead = true
      cost = lane.route.config.costOfItems?.(body as never) ?? 0
      const { headers } = request
      const handled = { caller, params, body, arrivedAt, headers, id } as unknown as FastifyRequest
      const answer = await lane.handle(handled)
      const json = typeof answer === 'string' ? answer : JSON.stringify(answer)
      return {
        status: 200,
        text: json,
        headers: [],
        cost: Math.max(cost, costOfCommandAnswer(lane.bucket, json)),
      }
    } catch (error) {
      const known = catalogued(error, app.log.child({ reqId: id }))
      return errorAnswer(admitted, isCommandRead ? known : known.beforeReading(), cost)
    }
  }

  return async (admitted: Admitted, text: string): Promise<void> => {
    const { lane, request, response, caller, ip, id } = admitted
    // The connection was answered before its request had arrived: what arrives later must not be executed.
    if (request.socket.writableEnded) return
    const answer = await answerOf(admitted, text)
    try {
      send(admitted, answer)
    } catch (err) {
      // The command may have been executed, and a part of the answer may have been sent: any other answer would contradict it.
      app.log.error({ err, reqId: id }, 'failed to send an answer; the connection is closed')
      response.destroy()
    }
    charge(lane.bucket, { ip, caller, log: app.log }, answer.cost)
  }
}
