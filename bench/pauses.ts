/**
 * Measures how late the engine's event loop is every 10 ms, with many accounts and orders, during a checkpoint, a block
 * of 1,000 deposits and a large auction. No chain.
 */
// npm run bench:pauses -- [--seconds 600] [--rate 200] [--accounts 1000000] [--orders 1000000] [--auction 20000]
import { loadavg } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { argumentsOf, positiveNumber, wholeNumber, withDefault } from '../service/command-line.ts'
import { percentile } from '../stack/replay/statistics.ts'
import { boundAt, Cluster, type Metrics } from './engine/cluster.ts'
import { Miner } from './engine/miner.ts'
import { sendMix } from './engine/mix.ts'
import { Outside } from './engine/outside.ts'
import { ordersOf, Placements, refusalOf } from './engine/placements.ts'
import { ISOLATED_MARKETS } from './intake/isolated-target.ts'
import type { BenchMarket } from './intake/orders.ts'

const { seconds, rate, accounts, orders, auction, deposits } = argumentsOf({
  command: 'npm run bench:pauses --',
  flags: {
    seconds: withDefault(positiveNumber('duration of the mix'), 600),
    rate: withDefault(positiveNumber('orders per second; the cancels are additional'), 200),
    accounts: withDefault(wholeNumber('accounts', { least: 2_000 }), 1_000_000),
    orders: withDefault(wholeNumber('open orders', { least: 1 }), 1_000_000),
    auction: withDefault(wholeNumber('crossing orders of the large auction; 0: none'), 20_000),
    deposits: withDefault(wholeNumber('deposits of the full block'), 1_000),
  },
})

const TRADERS = 64
/** Traders of the large auction, apart from those of the mix. */
const FIRST_CROSSING = 100
const CROSSING_TRADERS = 1_000
const ITEMS = 100
const BUDGET_MS = 30_000
const TARGET = { p999: 20, max: 150 }
const NAME = 'engine_pause_seconds'

/** Orders that cross each other rest while no node responds: no batch runs meanwhile. One batch can match all of them then. */
async function crossMany(cluster: Cluster, outside: Outside, count: number): Promise<void> {
  const api = await cluster.connect('api')
  const { spec, oracle } = ISOLATED_MARKETS[0] as BenchMarket
  const placements = new Placements(500_000_000)
  outside.hasHead = false
  await outside.inform()
  for (let from = 0; from < count; from += ITEMS) {
    const number = from / ITEMS
    const side = number % 2 === 0 ? 'LONG' : 'SHORT'
    const userId = FIRST_CROSSING + (number % CROSSING_TRADERS)
    const price = Math.round(oracle * (side === 'LONG' ? 1.002 : 0.998))
    const terms = { marketId: spec.marketId, userId, side, type: 'LIMIT', price, steps: 10 } as const
    const items = Array.from({ length: Math.min(ITEMS, count - from) }, () => placements.item(terms))
    const refusal = refusalOf(await api.submit<'orders'>(ordersOf(userId, items), BUDGET_MS))
    if (refusal !== null) throw new Error(`orders of the large auction were refused: ${refusal}`)
  }
  outside.hasHead = true
  await outside.inform()
}

const shown = (from: Metrics, to: Metrics) => {
  const buckets = to.bucketsSince(from, NAME)
  const milliseconds = (bound: number): number => Math.round(bound * 1000)
  return {
    samples: buckets.reduce((sum, { count }) => sum + count, 0),
    'p99, at most, ms': milliseconds(boundAt(buckets, 0.99)),
    'p99.9, at most, ms': milliseconds(boundAt(buckets, 0.999)),
    'longest, at most, ms': milliseconds(boundAt(buckets, 1)),
  }
}

// A checkpoint is due once, in the middle of the run: each order leaves about two rows.
const checkpointRows = Math.max(1_000, Math.floor(rate * seconds))
const cluster = await Cluster.create({ markets: ISOLATED_MARKETS, accounts, orders, tail: 0 })
try {
  const member = await cluster.start({ CHECKPOINT_ROWS: String(checkpointRows) })
  const outside = await Outside.open(cluster, ISOLATED_MARKETS)
  const miner = new Miner(outside, ISOLATED_MARKETS)
  await miner.start()
  const api = await cluster.connect('api')
  await sendMix(api, ISOLATED_MARKETS, { rate, seconds: 5, accounts: TRADERS, seed: 2 })
  const started = await member.metrics()
  const mix = sendMix(api, ISOLATED_MARKETS, { rate, seconds, accounts: TRADERS, seed: 1 }, 200_000_000)
  await sleep((seconds * 1000) / 3)
  const beforeBlock = await member.metrics()
  miner.fill(deposits)
  await sleep(3_000)
  const afterBlock = await member.metrics()
  if (auction > 0) await crossMany(cluster, outside, auction)
  await sleep(10_000)
  const afterAuction = await member.metrics()
  const { sent, refused, latencies } = await mix
  const ended = await member.metrics()
  const figures = [
    { phase: 'all', ...shown(started, ended) },
    { phase: 'mix', ...shown(started, beforeBlock) },
    { phase: 'full block', ...shown(beforeBlock, afterBlock) },
    { phase: 'large auction', ...shown(afterBlock, afterAuction) },
    { phase: 'mix and checkpoint', ...shown(afterAuction, ended) },
  ]
  await miner.stop()
  outside.stop()
  console.table(figures)
  const load = Number((loadavg()[0] as number).toFixed(1))
  const { rows } = await cluster.pool.query(
    'select count(*)::int as count from engine_checkpoints where is_complete',
  )
  console.log(
    JSON.stringify({
      bench: 'pauses',
      seconds,
      rate,
      accounts,
      orders,
      auction,
      deposits,
      load,
      sent,
      refused: Object.fromEntries(refused),
      answered_p50_ms: percentile(latencies, 0.5),
      answered_p99_ms: percentile(latencies, 0.99),
      mined: miner.mined,
      checkpoints: rows[0].count - 1,
      memory_mb: Math.round(member.memory().resident / 1e6),
      target: TARGET,
      figures,
    }),
  )
} finally {
  await cluster.stop()
}
