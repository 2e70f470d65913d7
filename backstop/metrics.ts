/** The Prometheus metrics of the backstop. */
import type { Registry } from 'prom-client'
import { createRegistry } from '../service/metrics.ts'

export interface Metrics {
  readonly registry: Registry
  ordered(symbol: string): void
  failed(): void
}

export function createMetrics(): Metrics {
  const { registry, instruments } = createRegistry()
  const orders = instruments.counter('backstop_orders_total', 'Closing orders placed', ['market'])
  const failures = instruments.counter('backstop_failed_turns_total', 'Turns in which a market failed')
  return {
    registry,
    ordered: (market) => orders.inc({ market }),
    failed: () => failures.inc(),
  }
}
