/** Health and metrics over HTTP. */
import { createServer, type Server } from 'node:http'
import type { Registry } from 'prom-client'

export interface HealthOptions {
  readonly host: string
  readonly port: number
  readonly registry: Registry
  /** What the process cannot work without, by name; a check fails by throwing or by false. */
  readonly checks: Readonly<Record<string, () => Promise<boolean>>>
}

async function readiness(checks: HealthOptions['checks']): Promise<Record<string, boolean>> {
  const entries = Object.entries(checks).map(
    async ([name, check]) => [name, await check().catch(() => false)] as const,
  )
  return Object.fromEntries(await Promise.all(entries))
}

async function answer(path: string, { registry, checks }: HealthOptions): Promise<[number, string, string]> {
  if (path === '/health/live') return [200, 'application/json', '{"live":true}']
  if (path === '/metrics') return [200, registry.contentType, await registry.metrics()]
  if (path !== '/health/ready') return [404, 'application/json', '{"message":"not found"}']
  const found = await readiness(checks)
  const isReady = Object.values(found).every(Boolean)
  return [isReady ? 200 : 503, 'application/json', JSON.stringify({ ready: isReady, ...found })]
}

export async function serveHealth(options: HealthOptions): Promise<{ close(): Promise<void> }> {
  const server: Server = createServer((request, response) => {
    answer(new URL(request.url ?? '/', 'http://keeper').pathname, options)
      .then(([status, type, body]) => response.writeHead(status, { 'content-type': type }).end(body))
      .catch(() => response.writeHead(500).end())
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(options.port, options.host, resolve)
  })
  return {
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
