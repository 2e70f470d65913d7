/** Prints a measurement as tables and one JSON line. */
import { percentile } from '../../stack/replay/statistics.ts'
import type { Statements } from './database-watch.ts'
import type { Kind } from './flow.ts'
import type { Sample } from './generator.ts'
import type { ProcessorTimes } from './processor-time.ts'
import type { RequoteWay } from './requote-plan.ts'
import type { BatchSample } from './requoter.ts'
import type { Stages } from './stages.ts'

export interface Measurement {
  /** Orders per second; null for recorded flow. */
  readonly rate: number | null
  readonly seconds: number
  readonly apis: number
  readonly idle: number
  readonly idleTimes: ProcessorTimes
  readonly used: ProcessorTimes
  readonly statements: Statements
  readonly waits: ReadonlyMap<string, number>
  /** Load average of the machine over the last minute. */
  readonly load: number
  /** Signature recoveries per second and core, before and after the measurement. */
  readonly recovery: readonly [number, number]
  readonly stages: Stages
  readonly samples: readonly Sample[]
  /** Quote batches of the market maker. */
  readonly requotes: readonly BatchSample[]
  readonly requotedBy: RequoteWay
  readonly latestMs: number
}

const KINDS: readonly Kind[] = ['resting', 'crossing', 'conditional', 'cancel']
/** Programs of the benchmark itself. */
const OWN: ReadonlySet<string> = new Set(['generator', 'bench', 'hogs', 'database: clearbatch', 'rest'])

const NAMES: Readonly<Record<RequoteWay, string>> = { replace: 'replacement', place: 'placement' }

const rounded = (value: number, digits = 1): number => Number(value.toFixed(digits))

const latencies = (values: readonly number[]) => ({
  count: values.length,
  p50_ms: rounded(percentile(values, 0.5)),
  p99_ms: rounded(percentile(values, 0.99)),
  max_ms: rounded(percentile(values, 1)),
})

function latencyTable({ samples, requotes, requotedBy, stages }: Measurement) {
  const answered = KINDS.map((kind) => {
    const accepted = samples.filter((sample) => sample.kind === kind && sample.code === null)
    return [`sent → answered: ${kind}`, latencies(accepted.map(({ ms }) => ms))] as const
  })
  const refused = samples.filter(({ kind, code }) => kind !== 'cancel' && code !== null)
  return Object.fromEntries([
    ...answered,
    ['sent → refused: placement', latencies(refused.map(({ ms }) => ms))],
    ...(requotes.length > 0
      ? [
          [
            `sent → answered: batch of ${NAMES[requotedBy]}s`,
            latencies(requotes.map(({ ms }) => ms)),
          ] as const,
        ]
      : []),
    ['accepted → fill readable', latencies(stages.readable)],
  ])
}

const renewedOf = ({ requotes }: Measurement): number =>
  requotes.reduce((sum, { renewed }) => sum + renewed, 0)

function processorTable(measurement: Measurement) {
  const { used, idleTimes, idle, seconds, stages, samples, requotedBy } = measurement
  const quotes = renewedOf(measurement)
  const line = (time: number, idleTime: number) => ({
    'ms per order': rounded((time * 1000) / stages.orders, 3),
    'ms per request': rounded((time * 1000) / samples.length, 3),
    ...(quotes > 0 && { [`ms per ${NAMES[requotedBy]}`]: rounded((time * 1000) / quotes, 3) }),
    cores: rounded(time / seconds, 3),
    'cores idle': rounded(idleTime / idle, 3),
  })
  const exchange = [...used].filter(([kind]) => !OWN.has(kind))
  const sum = (times: ProcessorTimes, isCounted: (kind: string) => boolean): number =>
    [...times].reduce((total, [kind, time]) => (isCounted(kind) ? total + time : total), 0)
  const total = (isCounted: (kind: string) => boolean) =>
    line(sum(used, isCounted), sum(idleTimes, isCounted))
  const lines = [...exchange, ...[...used].filter(([kind]) => OWN.has(kind))]
  return Object.fromEntries([
    ['exchange', total((kind) => !OWN.has(kind))],
    ['exchange without chain', total((kind) => !OWN.has(kind) && kind !== 'chain')],
    ...lines.map(([kind, time]) => [kind, line(time, idleTimes.get(kind) ?? 0)] as const),
  ])
}

/** Waits by kind. The mean number of waiting sessions × run time / orders is the wait in ms per order. */
function waitTable({ waits, stages, seconds }: Measurement) {
  const perOrder = (sessions: number): number => rounded((sessions * seconds * 1000) / stages.orders, 3)
  return Object.fromEntries(
    [...waits]
      .sort(([, a], [, b]) => b - a)
      .map(([kind, sessions]) => [
        kind,
        { sessions: rounded(sessions, 3), 'ms per order': perOrder(sessions) },
      ])
      .slice(0, 20),
  )
}

function errorTable({ samples, requotes, requotedBy }: Measurement): Record<string, number> {
  const refused = samples.filter(({ code }) => code !== null).map(({ kind, code }) => `${kind}: ${code}`)
  const kept = requotes.flatMap(({ refused: codes }) =>
    codes.map((code) => `quote's ${NAMES[requotedBy]}: ${code}`),
  )
  const byCode = Map.groupBy([...refused, ...kept], (line) => line)
  return Object.fromEntries([...byCode].map(([code, all]) => [code, all.length]))
}

export function print(measurement: Measurement): void {
  const { rate, seconds, apis, recovery, load, stages, samples, requotedBy, statements, latestMs } =
    measurement
  const quotes = renewedOf(measurement)
  const perOrder = (calls: number): number => rounded(calls / stages.orders, 2)
  const latency = latencyTable(measurement)
  const processor = processorTable(measurement)
  const waits = waitTable(measurement)
  const errors = errorTable(measurement)
  const machine = {
    'recoveries per second and core': recovery.map(Math.round),
    'load of the machine': rounded(load, 2),
    'latest request, ms': rounded(latestMs),
  }
  const calls = Object.fromEntries([...statements.calls].map(([login, count]) => [login, perOrder(count)]))

  const flow = rate === null ? 'recorded flow' : `${rate} orders/s`
  const results = [
    `${stages.orders} orders accepted`,
    `${samples.length} requests`,
    `${stages.fills} orders filled`,
    ...(quotes > 0 ? [`${quotes} ${NAMES[requotedBy]}s of quotes`] : []),
  ]
  console.log(`${flow} for ${seconds} s: ${results.join(', ')}`)
  console.log(machine)
  console.table(latency)
  console.table(processor)
  console.log('sessions of the database, sampled')
  console.table(waits)
  console.log('statements per order', calls)
  if (statements.top.length > 0) {
    console.table(
      statements.top.map(({ login, calls: count, ms, planning_ms, text }) => ({
        login,
        'calls per order': perOrder(count),
        'ms per order': rounded(ms / stages.orders, 3),
        'ms per call': rounded(ms / count, 3),
        'planning, ms per order': rounded(planning_ms / stages.orders, 3),
        statement: text.slice(0, 150),
      })),
    )
  }
  console.log('errors', errors)
  const { orders, fills } = stages
  const counts = { orders, fills, quotes, requotedBy, requests: samples.length }
  const line = { bench: 'mix', rate, seconds, apis, ...counts, ...machine, latency, processor, waits }
  console.log(JSON.stringify({ ...line, 'statements per order': calls, errors }))
}
