/** What the indexer tells Prometheus. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { Metrics } from './ports.ts'

export function createMetrics(): { readonly metrics: Metrics; readonly registry: Registry } {
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry })
  const head = new Gauge({
    name: 'indexer_head_block',
    help: 'Head of the chain at the last complete pass',
    registers,
  })
  const completed = new Gauge({
    name: 'indexer_head_reached_timestamp_seconds',
    help: 'When a pass last reached the head of the chain',
    registers,
  })
  const blocks = new Counter({ name: 'indexer_blocks_total', help: 'Blocks recorded', registers })
  const facts = new Counter({
    name: 'indexer_facts_total',
    help: 'Logs of our contracts recorded',
    registers,
  })
  const rolledBack = new Counter({
    name: 'indexer_blocks_rolled_back_total',
    help: 'Blocks lost to forks',
    registers,
  })
  const mismatches = new Counter({
    name: 'indexer_settlement_mismatches_total',
    help: 'Settlements that did something else than they were sent for',
    labelNames: ['kind'],
    registers,
  })
  const rows = new Counter({
    name: 'indexer_rows_projected_total',
    help: 'Log rows projected',
    labelNames: ['shard'],
    registers,
  })
  const seconds = new Histogram({
    name: 'indexer_chunk_seconds',
    help: 'Time to project one chunk of log rows',
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5],
    registers,
  })
  const failures = new Counter({
    name: 'indexer_failures_total',
    help: 'Runs that failed and are tried again',
    labelNames: ['job'],
    registers,
  })
  const metrics: Metrics = {
    headReached(number) {
      head.set(number)
      completed.setToCurrentTime()
    },
    blockApplied(count) {
      blocks.inc()
      facts.inc(count)
    },
    rolledBack: (count) => rolledBack.inc(count),
    mismatch: (kind) => mismatches.inc({ kind }),
    projected(shard, count, duration) {
      rows.inc({ shard }, count)
      seconds.observe(duration)
    },
    failed: (job) => failures.inc({ job }),
  }
  return { metrics, registry }
}
