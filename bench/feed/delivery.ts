/**
 * Measures delivery under crossing flow: from a batch's commit to the last byte at the last of many subscribed sockets.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { readRows } from '../../db/journal.ts'
import { marketShard } from '../../domain/journal/journal-row.ts'
import { percentile } from '../../stack/replay/statistics.ts'
import type { CompleteTarget } from '../intake/complete-target.ts'
import type { FlowMessage, FlowTask, StartAt } from '../mix/generator.ts'
import { processorTimes, timesBetween } from '../mix/processor-time.ts'
import type { ReadersTask, Received } from './readers.ts'

export interface DeliveryOptions {
  readonly sockets: number
  /** Orders per second. */
  readonly rate: number
  readonly seconds: number
  readonly warmup: number
  /** Whether resting orders are also cancelled, in recorded proportion: 0.45 further requests per order. */
  readonly cancels: boolean
}

const LEAD_MS = 500
const SETTLE_MS = 2_000
/** Half of the orders take the quantity that the other half offers. */
const CROSSING = 0.5
const CHANNELS = ['book', 'trades', 'auction']

export interface Delivery {
  readonly batches: number
  readonly messages: number
  /** Batches that at least one socket did not receive. */
  readonly missing: number
  readonly p50_ms: number
  readonly p99_ms: number
  /** Accepted requests of the flow per second. */
  readonly accepted: number
  /** Average cores in use, by kind of process. */
  readonly cores: Readonly<Record<string, number>>
}

export async function measureDelivery(target: CompleteTarget, options: DeliveryOptions): Promise<Delivery> {
  const [market] = target.markets
  if (market === undefined) throw new Error('the exchange has no market')
  const { marketId } = market.spec
  const shard = marketShard(marketId)
  const readers = fork(new URL('./readers.ts', import.meta.url), { serialization: 'advanced' })
  const generator = fork(new URL('../mix/generator.ts', import.meta.url), { serialization: 'advanced' })
  try {
    readers.send({
      ...{ url: `ws://127.0.0.1:${target.port}/v0/ws`, sockets: options.sockets },
      topics: CHANNELS.map((channel) => `market.${marketId}.${channel}`),
      journal: { databaseUrl: target.databaseUrl, shard },
    } satisfies ReadersTask)
    await once(readers, 'message')
    const { rate, seconds, warmup, cancels } = options
    const flow = {
      rate,
      seconds: warmup + seconds,
      accounts: target.keys.length,
      seed: 1,
      ...{ crossing: CROSSING, cancels },
    }
    generator.send({ ports: [target.port], keys: target.keys, flow, markets: [market] } satisfies FlowTask)
    await once(generator, 'message')
    const startAt = Date.now() + LEAD_MS
    const from = startAt + warmup * 1000
    const until = from + seconds * 1000
    generator.send({ startAt } satisfies StartAt)
    const answered = once(generator, 'message') as Promise<[FlowMessage]>
    const known = new Map([
      ...Object.entries({ ...target.processes, api: target.stack.api.pid() ?? 0 }).map(
        ([name, pid]) => [pid, name] as const,
      ),
      ...[[generator.pid ?? 0, 'generator'] as const, [readers.pid ?? 0, 'readers'] as const],
    ])
    await sleep(from - Date.now())
    const before = await processorTimes(target.db, known)
    await sleep(until - Date.now())
    const used = timesBetween(before, await processorTimes(target.db, known))
    const [result] = await answered
    if (!('samples' in result)) throw new Error('the generator has sent no samples')
    await sleep(SETTLE_MS)
    readers.send('end')
    const [received] = (await once(readers, 'message')) as [Received]
    const rows = await readRows(target.db, shard, 0, 1_000_000)
    const cleared = new Map(
      rows.flatMap(({ seq, row }) => (row.kind === 'batch_cleared' ? [[row.batch_id, seq]] : [])),
    )
    const accepted = result.samples.filter(({ at, code }) => at >= warmup * 1000 && code === null)
    return {
      ...summaryOf(received, cleared, { ...options, from, until }),
      accepted: Math.round(accepted.length / seconds),
      cores: Object.fromEntries(
        [...used].map(([kind, each]) => [kind, Math.round((each / seconds) * 100) / 100]),
      ),
    }
  } finally {
    readers.kill()
    generator.kill()
  }
}

function summaryOf(
  { batches, commits, messages }: Received,
  cleared: ReadonlyMap<number, number>,
  { sockets, from, until }: DeliveryOptions & { readonly from: number; readonly until: number },
): Omit<Delivery, 'accepted' | 'cores'> {
  const delays: number[] = []
  let missing = 0
  for (const [batch, of] of Map.groupBy(batches, (each) => each.batch)) {
    const seq = cleared.get(batch)
    const commit = seq === undefined ? undefined : commits.find((each) => each.seq >= seq)
    if (commit === undefined || commit.at < from || commit.at > until) continue
    if (of.some(({ count }) => count < sockets)) missing++
    delays.push(Math.max(...of.map(({ last }) => last)) - commit.at)
  }
  return {
    ...{ batches: delays.length, messages, missing },
    p50_ms: percentile(delays, 0.5),
    p99_ms: percentile(delays, 0.99),
  }
}
