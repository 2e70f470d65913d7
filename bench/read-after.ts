/**
 * How long a read waits for its own write while the exchange is busy. Placements arrive at a fixed rate from a process of their own;
 * meanwhile other orders are placed here, and each is read by its bookmark the moment its placement is answered. Against a complete
 * stack of its own. Prints a table and one JSON line; fails where a read does not show its write.
 *
 *   npm run bench:read-after -- [--rate 1000] [--reads 50] [--seconds 20]
 */
import { once } from 'node:events'
import http from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { percentile } from '../stack/replay/statistics.ts'
import { startComplete } from './intake/complete.ts'
import type { Exchange } from './intake/exchange.ts'
import { startGenerator } from './intake/generator.ts'
import type { LoadRun, Measured } from './intake/load.ts'
import { accountOf, type BenchMarket, bodyOf, signerOf } from './intake/orders.ts'

/** Salts of the orders that are read, far from those of the load. */
const FIRST_SALT = 2 ** 40
const { values } = parseArgs({
  options: {
    rate: { type: 'string', default: '1000' },
    reads: { type: 'string', default: '50' },
    seconds: { type: 'string', default: '20' },
  },
})
const [rate, reads, seconds] = [Number(values.rate), Number(values.reads), Number(values.seconds)]
const agent = new http.Agent({ keepAlive: true, maxSockets: 256 })

interface Answer {
  readonly status: number
  readonly body: {
    readonly order?: { readonly order_id: string; readonly order_hash: string }
    readonly order_hash?: string
    readonly read_after?: { readonly shard_id: string; readonly shard_seq: string }
    readonly details?: { readonly code: string }
  }
}

async function ask(port: number, key: string, method: string, path: string, body?: string): Promise<Answer> {
  const headers = {
    authorization: `Key ${key}`,
    ...(body !== undefined && { 'content-type': 'application/json' }),
  }
  const request = http.request({ port, host: '127.0.0.1', method, path, headers, agent })
  request.end(body)
  const [response] = (await once(request, 'response')) as [http.IncomingMessage]
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk as Buffer)
  return { status: response.statusCode ?? 0, body: JSON.parse(Buffer.concat(chunks).toString()) }
}

interface Tally {
  readonly placed: number[]
  readonly waited: number[]
  readonly refused: Map<string, number>
}

const count = (tally: Tally, { status, body }: Answer): void => {
  const code = body.details?.code ?? String(status)
  tally.refused.set(code, (tally.refused.get(code) ?? 0) + 1)
}

/** Places one order and reads it by its bookmark. */
async function placeAndRead({ port, keys, markets }: Exchange, index: number, tally: Tally): Promise<void> {
  const who = index % keys.length
  const key = keys[who] as string
  const market = markets[index % markets.length] as BenchMarket
  const body = bodyOf(signerOf(market)(accountOf(who), FIRST_SALT + index), market.spec)
  const sent = performance.now()
  const placed = await ask(port, key, 'POST', '/v0/orders', body)
  const answered = performance.now()
  const { order, read_after } = placed.body
  if (order === undefined || read_after === undefined) return count(tally, placed)
  tally.placed.push(answered - sent)
  const query = `read_after_shard_id=${read_after.shard_id}&read_after_shard_seq=${read_after.shard_seq}`
  const read = await ask(port, key, 'GET', `/v0/orders/${order.order_id}?${query}`)
  if (read.status !== 200) return count(tally, read)
  if (read.body.order_hash !== order.order_hash)
    throw new Error(`${order.order_id}: the read shows another order`)
  tally.waited.push(performance.now() - answered)
}

/** As many per second, whether or not earlier ones are answered. */
async function readAtRate(exchange: Exchange): Promise<Tally> {
  const tally: Tally = { placed: [], waited: [], refused: new Map() }
  const flying: Promise<void>[] = []
  const began = performance.now()
  for (let index = 0; index < reads * seconds; index++) {
    await sleep(Math.max(0, began + (1000 * index) / reads - performance.now()))
    flying.push(placeAndRead(exchange, index, tally))
  }
  await Promise.all(flying)
  return tally
}

const exchange = await startComplete()
const generator = startGenerator()
const load = (run: LoadRun, onStart?: () => void): Promise<Measured> => {
  const { port, keys, markets } = exchange
  return generator.run({ port, keys, markets, run }, onStart)
}
try {
  await load({ name: 'warm-up', kind: 'open', rate, seconds: 5 })
  const started = Promise.withResolvers<void>()
  const [behind, tally] = await Promise.all([
    // Longer than the reads: they are never without it.
    load({ name: 'load', kind: 'open', rate, seconds: seconds + 2 }, started.resolve),
    started.promise.then(() => readAtRate(exchange)),
  ])
  const figures = [
    { what: 'placement under load', values: tally.placed },
    { what: 'bookmarked read of it', values: tally.waited },
  ].map(({ what, values: times }) => ({
    what,
    samples: times.length,
    p50_ms: Number(percentile(times, 0.5).toFixed(1)),
    p99_ms: Number(percentile(times, 0.99).toFixed(1)),
    max_ms: Number(percentile(times, 1).toFixed(1)),
  }))
  console.table(figures)
  const refused = Object.fromEntries(tally.refused)
  console.log(JSON.stringify({ bench: 'read-after', rate, reads, seconds, load: behind, refused, figures }))
} finally {
  generator.stop()
  agent.destroy()
  await exchange.stop()
}
