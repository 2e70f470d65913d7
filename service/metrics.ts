/** Prometheus registry of a process, with short constructors for its instruments. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { certificateExpiries } from './certificates.ts'
import { droppedLogLines } from './logger.ts'
import { SPAN_OUTCOMES, spanCounts } from './spans.ts'

/** Bucket bounds for latencies, seconds: 1 ms to 10 s. */
export const LATENCY_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

export interface Instruments {
  counter<Label extends string>(name: string, help: string, labelNames?: readonly Label[]): Counter<Label>
  gauge<Label extends string>(name: string, help: string, labelNames?: readonly Label[]): Gauge<Label>
  /** A gauge that calls `read` at each scrape. */
  computed(name: string, help: string, read: () => number): void
  /** A gauge by one label that calls `read` at each scrape. */
  collected<Label extends string>(
    name: string,
    help: string,
    label: Label,
    read: () => Promise<ReadonlyMap<string, number>>,
  ): void
  histogram<Label extends string>(
    name: string,
    help: string,
    buckets: readonly number[],
    labelNames?: readonly Label[],
  ): Histogram<Label>
}

/** Creates a registry that includes the default metrics of Node.js. */
export function createRegistry(): { readonly registry: Registry; readonly instruments: Instruments } {
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry })
  new Gauge({
    name: 'log_lines_dropped',
    help: 'Log lines dropped since the start because stdout was not writable',
    registers,
    collect() {
      this.set(droppedLogLines())
    },
  })
  new Gauge({
    name: 'trace_spans',
    help: 'Finished spans since the start: exported, failed at the collector, or dropped because too many waited',
    labelNames: ['outcome'],
    registers,
    collect() {
      for (const outcome of SPAN_OUTCOMES) this.set({ outcome }, spanCounts()[outcome])
    },
  })
  new Gauge({
    name: 'certificate_expires_at_seconds',
    help: 'Earliest expiry of the certificates in a role, Unix time',
    labelNames: ['role'],
    registers,
    collect() {
      for (const [role, at] of certificateExpiries()) this.set({ role }, at)
    },
  })
  return {
    registry,
    instruments: {
      counter: (name, help, labelNames = []) => new Counter({ name, help, labelNames, registers }),
      gauge: (name, help, labelNames = []) => new Gauge({ name, help, labelNames, registers }),
      computed(name, help, read) {
        new Gauge({
          name,
          help,
          registers,
          collect() {
            this.set(read())
          },
        })
      },
      collected(name, help, label, read) {
        new Gauge<string>({
          name,
          help,
          labelNames: [label],
          registers,
          async collect() {
            const values = await read()
            this.reset()
            for (const [value, count] of values) this.set({ [label]: value }, count)
          },
        })
      },
      histogram: (name, help, buckets, labelNames = []) =>
        new Histogram({ name, help, buckets: [...buckets], labelNames, registers }),
    },
  }
}
