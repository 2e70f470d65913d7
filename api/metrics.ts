/** The Prometheus metrics of the api. */
import type { Registry } from 'prom-client'
import { createRegistry, LATENCY_SECONDS } from '../service/metrics.ts'
import { createLiveMetrics, type LiveMetrics } from './live/metrics.ts'

/** Gauges of values that other parts have, and their meanings. */
export const OBSERVED_GAUGES = {
  api_read_after_waiting: 'Reads waiting for their bookmark',
  api_placement_bound: 'Orders that may be under way to the engine',
  api_commands_waiting: 'Placements and cancels waiting for the engine',
} as const

export type ObservedGauge = keyof typeof OBSERVED_GAUGES

export interface Metrics {
  readonly registry: Registry
  request(method: string, route: string, status: number, seconds: number): void
  command(kind: string, result: string): void
  /** System time less database time. */
  clockSkew(seconds: number): void
  readonly live: LiveMetrics
  /** The value is read at each scrape. */
  gauge(name: ObservedGauge, read: () => number): void
}

export function createMetrics(): Metrics {
  const { registry, instruments } = createRegistry()
  const { counter, gauge, histogram } = instruments
  const requests = histogram(
    'api_request_duration_seconds',
    'Time from the arrival of a request to its response',
    LATENCY_SECONDS,
    ['method', 'route', 'status'],
  )
  const commands = counter('api_commands_total', 'Commands of traders', ['kind', 'result'])
  const skew = gauge('api_clock_skew_seconds', 'System time less database time')
  return {
    registry,
    request: (method, route, status, seconds) =>
      requests.observe({ method, route, status: String(status) }, seconds),
    command: (kind, result) => commands.inc({ kind, result }),
    clockSkew: (seconds) => skew.set(seconds),
    live: createLiveMetrics(instruments),
    gauge: (name, read) => instruments.computed(name, OBSERVED_GAUGES[name], read),
  }
}
