/** Liveness and readiness for load balancers, on the public port. Details and metrics are on the internal listener. */
import { LIVE, type Readiness } from '../../service/health.ts'
import type { App } from './types.ts'

export interface ProbePorts {
  readonly readiness: () => Promise<Readiness>
}

const hidden = { config: { access: 'internal' }, schema: { hide: true } } as const

export function probeRoutes(app: App, { readiness }: ProbePorts): void {
  app.get('/health/live', hidden, () => LIVE)
  app.get('/health/ready', hidden, async (_request, reply) => {
    const { code, status } = await readiness()
    return reply.code(code).send({ status })
  })
}
