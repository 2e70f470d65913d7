/** Liveness, readiness and metrics over HTTP, in one format for every process. */
import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Registry } from 'prom-client'

/** One dependency without which the process cannot do its work. */
export interface Check {
  readonly name: string
  /** True, or the reason why the dependency is unavailable. A rejection counts as its message. */
  check(): Promise<true | string>
}

export interface Readiness {
  /** HTTP status of `/health/ready`. */
  readonly code: 200 | 503
  readonly body: {
    readonly status: 'ok' | 'unavailable'
    readonly checks: Readonly<Record<string, true | string>>
  }
}

/** The body of `/health/live`: an answer at all is what shows that the process lives. */
export const LIVE = { status: 'ok' } as const

async function outcome({ name, check }: Check): Promise<readonly [string, true | string]> {
  try {
    return [name, await check()]
  } catch (error) {
    return [name, error instanceof Error ? error.message : String(error)]
  }
}

/** Runs all checks at once. */
export async function readinessOf(checks: readonly Check[]): Promise<Readiness> {
  const results = await Promise.all(checks.map(outcome))
  const isReady = results.every(([, result]) => result === true)
  return {
    code: isReady ? 200 : 503,
    body: { status: isReady ? 'ok' : 'unavailable', checks: Object.fromEntries(results) },
  }
}

export interface HealthOptions {
  readonly host: string
  /** 0 for a free port. */
  readonly port: number
  readonly registry: Registry
  readonly checks: readonly Check[]
}

export interface HealthServer {
  readonly port: number
  close(): Promise<void>
}

/** For processes that serve nothing else. Resolves when the port is bound. */
export async function serveHealth(options: HealthOptions): Promise<HealthServer> {
  const server = createServer((request, response) => {
    answer(new URL(request.url ?? '/', 'http://localhost').pathname, response, options).catch(
      (error: Error) => respond(response, 500, { message: error.message }),
    )
  })
  await listen(server, options)
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

const listen = (server: Server, { host, port }: HealthOptions): Promise<void> =>
  new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })

async function answer(
  path: string,
  response: ServerResponse,
  { registry, checks }: HealthOptions,
): Promise<void> {
  if (path === '/health/live') return respond(response, 200, LIVE)
  if (path === '/health/ready') {
    const { code, body } = await readinessOf(checks)
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
