/** Liveness, readiness and metrics over HTTP, in one format for every process, on a separate listener. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Registry } from 'prom-client'
import type { Listener } from './environment.ts'
import { bind, createHttpServer, type HttpListener, INTERNAL_SERVER } from './http-listener.ts'
import type { Logger } from './logger.ts'

/** Failure codes of a check. Error texts can contain addresses and credentials, so they are only logged. */
export type CheckFailure =
  | 'failed'
  | 'timed_out'
  | 'shutting_down'
  | 'no_response'
  | 'no_market_listed'
  | 'not_listening'
  | 'market_not_started'
  | 'head_never_reached'
  | 'head_late'
  | 'projection_late'
  | 'clock_skewed'
  | 'lane_stalled'

/** A dependency that the process needs to work. */
export interface Check {
  readonly name: string
  /** A rejection counts as `failed` and is logged. */
  check(): Promise<true | CheckFailure>
}

export interface Readiness {
  /** HTTP status of `/health/ready`. */
  readonly code: 200 | 503
  readonly status: 'ok' | 'unavailable'
  readonly checks: Readonly<Record<string, true | CheckFailure>>
}

/** Time limit of one check, so that a probe is answered while a dependency hangs. */
const CHECK_MS = 2_000

/** Body of `/health/live`. Any response proves that the process is alive. */
export const LIVE = { status: 'ok' } as const

async function outcome(
  { name, check }: Check,
  logger: Logger,
): Promise<readonly [string, true | CheckFailure]> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<CheckFailure>((resolve) => {
    timer = setTimeout(() => resolve('timed_out'), CHECK_MS)
  })
  try {
    return [name, await Promise.race([check(), late])]
  } catch (err) {
    logger.warn({ check: name, err }, 'readiness check failed')
    return [name, 'failed']
  } finally {
    clearTimeout(timer)
  }
}

/** Runs all checks at once. Concurrent callers share one run, so that probes cannot load the dependencies. */
export function createReadiness(checks: readonly Check[], logger: Logger): () => Promise<Readiness> {
  let running: Promise<Readiness> | null = null
  async function run(): Promise<Readiness> {
    const results = await Promise.all(checks.map((check) => outcome(check, logger)))
    const isReady = results.every(([, result]) => result === true)
    running = null
    return {
      code: isReady ? 200 : 503,
      status: isReady ? 'ok' : 'unavailable',
      checks: Object.fromEntries(results),
    }
  }
  return () => (running ??= run())
}

export interface HealthOptions extends Listener {
  readonly registry: Registry
  readonly logger: Logger
  readonly readiness: () => Promise<Readiness>
  /** Serves every request with this path prefix; the page has its own authentication. */
  readonly page?: {
    readonly prefix: string
    readonly handle: (request: IncomingMessage, response: ServerResponse) => void
  } | null
}

/** Starts the server; resolves when the port is bound. */
export async function serveHealth(options: HealthOptions): Promise<HttpListener> {
  const server = createHttpServer(options, INTERNAL_SERVER, (request, response) => {
    const [path = '/'] = (request.url ?? '/').split('?')
    const { page } = options
    if (page && (path === page.prefix || path.startsWith(`${page.prefix}/`)))
      return page.handle(request, response)
    answer(path, response, options).catch((err: unknown) => {
      options.logger.error({ err }, 'answering a probe failed')
      respond(response, 500, { message: 'internal error' })
    })
  })
  return bind(server, options)
}

async function answer(
  path: string,
  response: ServerResponse,
  { registry, readiness }: HealthOptions,
): Promise<void> {
  if (path === '/health/live') return respond(response, 200, LIVE)
  if (path === '/health/ready') {
    const { code, ...body } = await readiness()
    return respond(response, code, body)
  }
  if (path === '/metrics') {
    const text = await registry.metrics()
    response.writeHead(200, { 'content-type': registry.contentType }).end(text)
    return
  }
  respond(response, 404, { message: `no route ${path}: /health/live, /health/ready, /metrics` })
}

function respond(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}
