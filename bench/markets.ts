/**
 * Measures how late turns are with many markets: the mix trades in the busy markets, and a market maker replaces two
 * quotes in every market each second. No chain.
 */
// npm run bench:markets -- [--markets 100] [--busy 20] [--rate 200] [--seconds 60] [--accounts 10000] [--orders 100000]
import { loadavg } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import type { OrderHash } from '../domain/units.ts'
import { argumentsOf, positiveNumber, wholeNumber, withDefault } from '../service/command-line.ts'
import { percentile } from '../stack/replay/statistics.ts'
import { boundAt, Cluster, type Metrics } from './engine/cluster.ts'
import { Miner } from './engine/miner.ts'
import { sendMix } from './engine/mix.ts'
import { Outside } from './engine/outside.ts'
import { cancelOf, ordersOf, Placements, refusalOf } from './engine/placements.ts'
import { isolatedMarket } from './intake/isolated-target.ts'
import type { BenchMarket } from './intake/orders.ts'
import { measureSignatures } from './intake/signatures.ts'

const options = argumentsOf({
  command: 'npm run bench:markets --',
  flags: {
    markets: withDefault(wholeNumber('markets', { least: 1, most: 1_000 }), 100),
    busy: withDefault(wholeNumber('markets of the mix', { least: 1 }), 20),
    rate: withDefault(
      positiveNumber('orders per second in all busy markets; the cancels are additional'),
      200,
    ),
    seconds: withDefault(positiveNumber('duration of the measurement'), 60),
    accounts: withDefault(wholeNumber('accounts', { least: 1_000 }), 10_000),
    orders: withDefault(wholeNumber('open orders', { least: 1 }), 100_000),
  },
})

const TRADERS = 64
const MAKER = 500
const BUDGET_MS = 10_000
const REQUOTE_MS = 1_000
/** Two cancels and two placements each: a command has at most 100 items. */
const MARKETS_PER_COMMAND = 25
/** No order of the mix reaches the maker's quotes. */
const DISTANCE = 0.02
const TARGET_P99_MS = 5

const markets = Array.from({ length: options.markets }, (_, at) => isolatedMarket(at + 1))
const busy = markets.slice(0, options.busy)

/**
 * Each second the maker's quotes end and new quotes rest, in commands of 25 markets. A refused command leaves the
 * former quotes.
 */
async function requote(cluster: Cluster, until: number) {
  const api = await cluster.connect('api')
  const placements = new Placements(600_000_000)
  const latencies: number[] = []
  const refusals: string[] = []
  const standing = new Map<number, OrderHash[]>()
  const quotesOf = ({ spec, oracle }: BenchMarket, round: number) =>
    (['LONG', 'SHORT'] as const).map((side) => {
      const away = Math.round(oracle * DISTANCE) + (round % 2)
      const price = side === 'LONG' ? oracle - away : oracle + away
      return placements.item({
        marketId: spec.marketId,
        userId: MAKER,
        side,
        type: 'LIMIT',
        price,
        steps: 10,
      })
    })
  const replace = async (some: readonly BenchMarket[], round: number): Promise<void> => {
    const [first] = some
    const key = first?.spec.marketId as number
    const quotes = some.flatMap((market) => quotesOf(market, round))
    const started = performance.now()
    const items = [...(standing.get(key) ?? []).map(cancelOf), ...quotes]
    const refusal = refusalOf(await api.submit<'orders'>(ordersOf(MAKER, items), BUDGET_MS))
    if (refusal !== null) {
      refusals.push(refusal)
      return
    }
    latencies.push(performance.now() - started)
    standing.set(
      key,
      quotes.map(({ order }) => order.hash),
    )
  }
  const commands = Array.from({ length: Math.ceil(markets.length / MARKETS_PER_COMMAND) }, (_, at) =>
    markets.slice(at * MARKETS_PER_COMMAND, (at + 1) * MARKETS_PER_COMMAND),
  )
  for (let round = 0; performance.now() < until; round++) {
    const started = performance.now()
    await Promise.all(commands.map((some) => replace(some, round)))
    await sleep(Math.max(0, started + REQUOTE_MS - performance.now()))
  }
  return { latencies, refusals }
}

function shown(from: Metrics, to: Metrics, name: string, label?: string) {
  const buckets = to.bucketsSince(from, name, label)
  const milliseconds = (bound: number): number => bound * 1000
  return {
    turns: buckets.reduce((sum, { count }) => sum + count, 0),
    'p50, at most, ms': milliseconds(boundAt(buckets, 0.5)),
    'p99, at most, ms': milliseconds(boundAt(buckets, 0.99)),
    'longest, at most, ms': milliseconds(boundAt(buckets, 1)),
  }
}

const recovery = measureSignatures().bare
const { accounts, orders, rate, seconds } = options
const cluster = await Cluster.create({ markets, accounts, orders, tail: 0 })
try {
  const member = await cluster.start()
  const outside = await Outside.open(cluster, markets)
  const miner = new Miner(outside, markets)
  await miner.start()
  const api = await cluster.connect('api')
  await sendMix(api, busy, { rate, seconds: 5, accounts: TRADERS, seed: 2 })
  const started = await member.metrics()
  const quoted = requote(cluster, performance.now() + seconds * 1000)
  const mix = await sendMix(api, busy, { rate, seconds, accounts: TRADERS, seed: 1 }, 200_000_000)
  const ended = await member.metrics()
  const requotes = await quoted
  await miner.stop()
  outside.stop()
  const figures = {
    'submitted after it was due': shown(started, ended, 'engine_turn_lateness_seconds'),
    'waited for the thread': shown(started, ended, 'engine_queue_seconds', 'class="auction"'),
  }
  console.table(figures)
  const { sent, refused, latencies } = mix
  const rounded = (value: number): number => Number(value.toFixed(1))
  console.log(
    JSON.stringify({
      bench: 'markets',
      ...options,
      recoveries_per_second: Math.round(recovery),
      load: rounded(loadavg()[0] as number),
      sent,
      refused: Object.fromEntries(refused),
      answered_p50_ms: rounded(percentile(latencies, 0.5)),
      answered_p99_ms: rounded(percentile(latencies, 0.99)),
      requoted_p50_ms: rounded(percentile(requotes.latencies, 0.5)),
      requoted_p99_ms: rounded(percentile(requotes.latencies, 0.99)),
      requotes_refused: requotes.refusals.length,
      mined: miner.mined,
      target_p99_ms: TARGET_P99_MS,
      figures,
    }),
  )
} finally {
  await cluster.stop()
}
