/** From the commit of a batch to the last byte on the last of many sockets that follow its market, under crossing flow. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { readRows } from '../../db/journal.ts'
import { marketShard } from '../../domain/journal/journal-row.ts'
import { percentile } from '../../stack/replay/statistics.ts'
import type { CompleteTarget } from '../intake/complete-target.ts'
import type { FlowTask, StartAt } from '../mix/generator.ts'
import type { ReadersTask, Received } from './readers.ts'

export interface DeliveryOptions {
  readonly sockets: number
  /** Orders per second. */
  readonly rate: number
  readonly seconds: number
  readonly warmup: number
}

const LEAD_MS = 500
const SETTLE_MS = 2_000
/** Half of the orders take what the others offer. */
const CROSSING = 0.5
const CHANNELS = ['book', 'trades', 'auction']

export interface Delivery {
  readonly batches: number
  readonly messages: number
  /** Batches of which a socket has no message. */
  readonly missing: number
  readonly p50_ms: number
  readonly p99_ms: number
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
    const { rate, seconds, warmup } = options
    const flow = {
      rate,
      seconds: warmup + seconds,
      accounts: target.keys.length,
      seed: 1,
      crossing: CROSSING,
    }
    generator.send({ ports: [target.port], keys: target.keys, flow, markets: [market] } satisfies FlowTask)
    await once(generator, 'message')
    const startAt = Date.now() + LEAD_MS
    generator.send({ startAt } satisfies StartAt)
    await once(generator, 'message')
    await sleep(SETTLE_MS)
    readers.send('end')
    const [received] = (await once(readers, 'message')) as [Received]
    const rows = await readRows(target.db, shard, 0, 1_000_000)
    const cleared = new Map(
      rows.flatMap(({ seq, row }) => (row.kind === 'batch_cleared' ? [[row.batch_id, seq]] : [])),
    )
    return summaryOf(received, cleared, {
      ...options,
      from: startAt + warmup * 1000,
      until: startAt + (warmup + seconds) * 1000,
    })
  } finally {
    readers.kill()
    generator.kill()
  }
}

function summaryOf(
  { batches, commits, messages }: Received,
  cleared: ReadonlyMap<number, number>,
  { sockets, from, until }: DeliveryOptions & { readonly from: number; readonly until: number },
): Delivery {
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
