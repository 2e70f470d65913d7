/** Notes when each request arrives, and runs handlers of commands with that time and the request's trace id. */
import type { Spans } from '../../service/spans.ts'
import type { ArrivalTimes } from '../arrival-times.ts'
import { runInSpan } from '../request-spans.ts'
import { traceIdOf } from './trace-id.ts'
import type { App } from './types.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** When its head arrived, by the monotonic clock. */
    arrivedAt: number
  }
}

/** Concerns the routes that are added after this call. */
export function stampArrivals(
  app: App,
  arrivals: Pick<ArrivalTimes, 'now' | 'run'>,
  spans: Spans | null,
): void {
  app.decorateRequest('arrivedAt', 0)
  app.addHook('onRequest', (request, _reply, done) => {
    request.arrivedAt = arrivals.now()
    done()
  })
  app.addHook('onRoute', (route) => {
    if (route.method !== 'POST') return
    const { handler } = route
    const name = `POST ${route.url}`
    route.handler = function handle(request, reply) {
      const { arrivedAt, headers, id } = request
      const traceId = traceIdOf(headers, id)
      const work = () => handler.call(this, request, reply)
      if (spans === null) return arrivals.run({ arrivedAt, traceId }, work)
      return runInSpan(spans, arrivals, { name, arrivedAt, traceId, traceparent: headers.traceparent }, work)
    }
  })
}
