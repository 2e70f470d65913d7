/** For the operator: liveness, readiness, metrics. */

import type { Metrics } from '../metrics.ts'
import type { App } from './types.ts'

export interface Check {
  readonly name: string
  /** Throws, or says why not. */
  check(): Promise<true | string>
}

export interface ProbePorts {
  readonly metrics: Metrics
  readonly checks: readonly Check[]
}

const internal = { access: 'internal' } as const
const hidden = { config: internal, schema: { hide: true } }

async function outcome({ name, check }: Check): Promise<readonly [string, true | string]> {
  try {
    return [name, await check()]
  } catch (error) {
    return [name, (error as Error).message]
  }
}

export function probeRoutes(app: App, { metrics, checks }: ProbePorts): void {
  app.get('/health/live', hidden, () => ({ status: 'ok' }))
  app.get('/health/ready', hidden, async (_request, reply) => {
    const results = await Promise.all(checks.map(outcome))
    const isReady = results.every(([, result]) => result === true)
    const body = { status: isReady ? 'ok' : 'unavailable', checks: Object.fromEntries(results) }
    return reply.code(isReady ? 200 : 503).send(body)
  })
  app.get('/metrics', hidden, async (_request, reply) =>
    reply.header('content-type', metrics.registry.contentType).send(await metrics.registry.metrics()),
  )
}
