/**
 * Measures how long a bookmarked read waits for its own write while another process sends placements to a complete
 * stack. Fails if a read does not show its write.
 */
// npm run bench:read-after -- [--rate 1000] [--reads 50] [--seconds 20]
import { once } from 'node:events'
import http from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { argumentsOf, positiveNumber, withDefault } from '../service/command-line.ts'
import { percentile } from '../stack/replay/statistics.ts'
import { startComplete } from './intake/complete-target.ts'
import { startGenerator } from './intake/generator.ts'
import type { LoadRun, Measured } from './intake/load.ts'
import { accountOf, type BenchMarket, bodyOf, signerOf } from './intake/orders.ts'
import type { Target } from './intake/target.ts'

/** First salt of the orders that are read, far above the salts of the load. */
const FIRST_SALT = 2 ** 40
const { rate, reads, seconds } = argumentsOf({
  command: 'npm run bench:read-after --',
  flags: {
    rate: withDefault(positiveNumber('placements per second'), 1000),
    reads: withDefault(positiveNumber('bookmarked reads per second'), 50),
    seconds: withDefault(positiveNumber('duration of the run'), 20),
  },
})
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

async function request(
  port: number,
  key: string,
  method: string,
  path: string,
  body?: string,
): Promise<Answer> {
  const headers = {
    authorization: `Key ${key}`,
    ...(body !== undefined && { 'content-type': 'application/json' }),
  }
  const sent = http.request({ port, host: '127.0.0.1', method, path, headers, agent })
  sent.end(body)
  const [response] = (await once(sent, 'response')) as [http.IncomingMessage]
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk as Buffer)
  return { status: response.statusCode ?? 0, body: JSON.parse(Buffer.concat(chunks).toString()) }
}

interface Tally {
  readonly placed: number[]
  readonly waited: number[]
  readonly rejected: Map<string, number>
}

const count = (tally: Tally, { status, body }: Answer): void => {
  const code = body.details?.code ?? String(status)
  tally.rejected.set(code, (tally.rejected.get(code) ?? 0) + 1)
}

/** Places one order and reads it by its bookmark. */
async function placeAndRead({ port, keys, markets }: Target, index: number, tally: Tally): Promise<void> {
  const account = index % keys.length
  const key = keys[account] as string
  const market = markets[index % markets.length] as BenchMarket
  const body = bodyOf(signerOf(market)(accountOf(account), FIRST_SALT + index), market.spec)
  const sent = performance.now()
  const placed = await request(port, key, 'POST', '/v0/orders', body)
  const answered = performance.now()
  const { order, read_after } = placed.body
  if (order === undefined || read_after === undefined) return count(tally, placed)
  tally.placed.push(answered - sent)
  const query = `read_after_shard_id=${read_after.shard_id}&read_after_shard_seq=${read_after.shard_seq}`
  const read = await request(port, key, 'GET', `/v0/orders/${order.order_id}?${query}`)
  if (read.status !== 200) return count(tally, read)
  if (read.body.order_hash !== order.order_hash)
    throw new Error(
      `the bookmarked read of ${order.order_id} returned another order: ${read.body.order_hash}`,
    )
  tally.waited.push(performance.now() - answered)
}

/** Sends at a fixed rate, whether or not earlier requests have returned. */
async function readAtRate(exchange: Target): Promise<Tally> {
  const tally: Tally = { placed: [], waited: [], rejected: new Map() }
  const inFlight: Promise<void>[] = []
  const began = performance.now()
  for (let index = 0; index < reads * seconds; index++) {
    await sleep(Math.max(0, began + (1000 * index) / reads - performance.now()))
    inFlight.push(placeAndRead(exchange, index, tally))
  }
  await Promise.all(inFlight)
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
  const [background, tally] = await Promise.all([
    // Two seconds longer than the reads, so that every read runs under load.
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
  const rejected = Object.fromEntries(tally.rejected)
  console.log(
    JSON.stringify({ bench: 'read-after', rate, reads, seconds, load: background, rejected, figures }),
  )
} finally {
  generator.stop()
  agent.destroy()
  await exchange.stop()
}
