/** The Prometheus metrics of a signer. */
import type { Registry } from 'prom-client'
import { createRegistry } from '../service/metrics.ts'
import type { SigningAnswer } from '../service/report-key.ts'

export interface Metrics {
  readonly registry: Registry
  answered(answer: SigningAnswer): void
}

export function createMetrics(): Metrics {
  const { registry, instruments } = createRegistry()
  const reports = instruments.counter('signer_reports_total', 'Reports that were signed or refused', [
    'result',
  ])
  return {
    registry,
    answered: (answer) => reports.inc({ result: 'refusal' in answer ? answer.refusal : 'SIGNED' }),
  }
}
