/** Liveness, readiness and metrics on the api's own port, in the format of every process. */
import { type Check, LIVE, readinessOf } from '../../service/health.ts'
import type { Metrics } from '../metrics.ts'
import type { App } from './types.ts'

export interface ProbePorts {
  readonly metrics: Metrics
  readonly checks: readonly Check[]
}

const hidden = { config: { access: 'internal' }, schema: { hide: true } } as const

export function probeRoutes(app: App, { metrics, checks }: ProbePorts): void {
  app.get('/health/live', hidden, () => LIVE)
  app.get('/health/ready', hidden, async (_request, reply) => {
    const { code, body } = await readinessOf(checks)
    return reply.code(code).send(body)
  })
  app.get('/metrics', hidden, async (_request, reply) =>
    reply.header('content-type', metrics.registry.contentType).send(await metrics.registry.metrics()),
  )
}
