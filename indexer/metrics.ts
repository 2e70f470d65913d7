/** The Prometheus metrics of the indexer. */
import type { Registry } from 'prom-client'
import { createRegistry, LATENCY_SECONDS } from '../service/metrics.ts'
import type { Metrics } from './ports.ts'

export function createMetrics(): { readonly metrics: Metrics; readonly registry: Registry } {
  const { registry, instruments } = createRegistry()
  const { counter, gauge, histogram } = instruments
  const head = gauge('indexer_head_block', 'Chain head at the last complete pass')
  const completed = gauge(
    'indexer_head_reached_timestamp_seconds',
    'Time of the last pass that reached the chain head',
  )
  const blocks = counter('indexer_blocks_total', 'Blocks recorded')
  const facts = counter('indexer_facts_total', 'Event logs of the exchange contracts recorded')
  const rolledBack = counter('indexer_blocks_rolled_back_total', 'Blocks rolled back after a fork')
  const mismatches = counter(
    'indexer_settlement_mismatches_total',
    'Settlements whose events differ from what was sent',
    ['kind'],
  )
  const rows = counter('indexer_rows_projected_total', 'Journal rows projected', ['shard'])
  const seconds = histogram(
    'indexer_chunk_seconds',
    'Time to project one chunk of journal rows, of all shards',
    LATENCY_SECONDS,
  )
  const skew = gauge('indexer_clock_skew_seconds', 'System time less database time')
  const failures = counter('indexer_failures_total', 'Failed passes that will be retried', ['job'])
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
    projected(shards, duration) {
      for (const each of shards) rows.inc({ shard: each.shard }, each.rows)
      seconds.observe(duration)
    },
    clockSkew: (seconds) => skew.set(seconds),
    failed: (job) => failures.inc({ job }),
  }
  return { metrics, registry }
}
