/** Notes when each request arrives, and runs handlers of commands with that time. */
import type { ArrivalTimes } from '../arrival-times.ts'
import type { App } from './types.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** When its head arrived, by the monotonic clock. */
    arrivedAt: number
  }
}

/** Concerns the routes that are added after this call. */
export function stampArrivals(app: App, arrivals: Pick<ArrivalTimes, 'now' | 'run'>): void {
  app.decorateRequest('arrivedAt', 0)
  app.addHook('onRequest', (request, _reply, done) => {
    request.arrivedAt = arrivals.now()
    done()
  })
  app.addHook('onRoute', (route) => {
    if (route.method !== 'POST') return
    const { handler } = route
    route.handler = function handle(request, reply) {
      return arrivals.run(request.arrivedAt, () => handler.call(this, request, reply))
    }
  })
}
