/** What the api tells Prometheus. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'

export interface Metrics {
  readonly registry: Registry
  request(method: string, route: string, status: number, seconds: number): void
  /** One transaction of a lane; `size` in items. */
  group(size: number, seconds: number): void
  command(kind: string, result: string): void
  gauge(name: string, help: string, read: () => number): void
}

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5]

export function createMetrics(): Metrics {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const registers = [registry]
  const requests = new Histogram({
    name: 'api_request_duration_seconds',
    help: 'Time from the arrival of a request to its answer',
    labelNames: ['method', 'route', 'status'] as const,
    buckets: SECONDS,
    registers,
  })
  const groupSize = new Histogram({
    name: 'api_group_size',
    help: 'Commands stored by one transaction',
    buckets: [1, 2, 4, 8, 16, 32, 64, 128, 256],
    registers,
  })
  const groupSeconds = new Histogram({
    name: 'api_group_duration_seconds',
    help: 'Duration of one such transaction',
    buckets: SECONDS,
    registers,
  })
  const commands = new Counter({
    name: 'api_commands_total',
    help: 'Commands by kind and result',
    labelNames: ['kind', 'result'] as const,
    registers,
  })
  return {
    registry,
    request: (method, route, status, seconds) =>
      requests.observe({ method, route, status: String(status) }, seconds),
    group(size, seconds) {
      groupSize.observe(size)
      groupSeconds.observe(seconds)
    },
    command: (kind, result) => commands.inc({ kind, result }),
    gauge(name, help, read) {
      new Gauge({
        name,
        help,
        registers,
        collect() {
          this.set(read())
        },
      })
    },
  }
}
