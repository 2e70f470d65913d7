/** `/health/live`, `/health/ready` and `/metrics`. */
import { createServer, type Server, type ServerResponse } from 'node:http'
import type { Registry } from 'prom-client'

/** What keeps the process from being ready, by name; empty when it is. */
export type Readiness = () => Promise<Readonly<Record<string, string>>>

export function createHealthServer(registry: Registry, readiness: Readiness): Server {
  return createServer((request, response) => {
    void answer(request.url ?? '/', response).catch((error: Error) => {
      json(response, 503, { ready: false, problems: { check: error.message } })
    })
  })

  async function answer(path: string, response: ServerResponse): Promise<void> {
    if (path === '/health/live') return json(response, 200, { live: true })
    if (path === '/health/ready') {
      const problems = await readiness()
      const isReady = Object.keys(problems).length === 0
      return json(response, isReady ? 200 : 503, { ready: isReady, problems })
    }
    if (path === '/metrics') {
      response.writeHead(200, { 'content-type': registry.contentType })
      response.end(await registry.metrics())
      return
    }
    json(response, 404, { message: 'not found' })
  }
}

function json(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify(body))
}
