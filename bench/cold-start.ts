/**
 * Measures a cold start of the engine from a checkpoint, until it owns the journal and accepts a placement; also its
 * memory, and journal bytes per order.
 */
// npm run bench:cold-start -- [--accounts 1000000] [--orders 1000000] [--tail 200000]
import { loadavg } from 'node:os'
import { performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { argumentsOf, wholeNumber, withDefault } from '../service/command-line.ts'
import { Cluster } from './engine/cluster.ts'
import { Outside } from './engine/outside.ts'
import { cancelOf, ordersOf, Placements, refusalOf } from './engine/placements.ts'
import { ISOLATED_MARKETS } from './intake/isolated-target.ts'
import type { BenchMarket } from './intake/orders.ts'
import { measureSignatures } from './intake/signatures.ts'
import { processorSeconds } from './mix/processor-time.ts'

const { accounts, orders, tail, pairs } = argumentsOf({
  command: 'npm run bench:cold-start --',
  flags: {
    accounts: withDefault(wholeNumber('accounts', { least: 64 }), 1_000_000),
    orders: withDefault(wholeNumber('open orders in the checkpoint', { least: 1 }), 1_000_000),
    tail: withDefault(wholeNumber('rows of the journal behind the checkpoint'), 200_000),
    pairs: withDefault(
      wholeNumber('orders that are placed and cancelled, to count their bytes', { least: 10 }),
      2_000,
    ),
  },
})

const BUDGET_MS = 60_000
/** Garbage of the start is collected by then. */
const REST_MS = 5_000
/** Pairs under way together: the groups of a busy engine have many commands. */
const TOGETHER = 50
const MARKET = ISOLATED_MARKETS[0] as BenchMarket

/** Bytes of the journal's relation, and of the JSON of its rows. */
async function journalBytes(
  { pool }: Cluster,
  from: number,
): Promise<{ head: number; json: number; stored: number }> {
  const { rows } = await pool.query(
    `select max(number)::int as head, coalesce(sum(length(rows::text)), 0)::int as json,
            coalesce(sum(pg_column_size(rows)), 0)::int as stored
     from engine_groups where number > $1`,
    [from],
  )
  return rows[0] as { head: number; json: number; stored: number }
}

async function placeAndCancel(cluster: Cluster): Promise<{ json: number; stored: number }> {
  const api = await cluster.connect('api')
  const placements = new Placements()
  const { rows } = await cluster.pool.query('select max(number)::int as head from engine_groups')
  const { head } = rows[0] as { head: number }
  const terms = { marketId: MARKET.spec.marketId, side: 'LONG', type: 'LIMIT', steps: 100 } as const
  for (let done = 0; done < pairs; done += TOGETHER)
    await Promise.all(
      Array.from({ length: Math.min(TOGETHER, pairs - done) }, async (_, at) => {
        const userId = 1 + at
        const item = placements.item({ ...terms, userId, price: Math.round(MARKET.oracle * 0.97) })
        for (const command of [item, cancelOf(item.order.hash)]) {
          const refusal = refusalOf(await api.submit<'orders'>(ordersOf(userId, [command]), BUDGET_MS))
          if (refusal !== null) throw new Error(`a command of the bench was refused: ${refusal}`)
        }
      }),
    )
  const { json, stored } = await journalBytes(cluster, head)
  return { json: json / pairs, stored: stored / pairs }
}

const { bare } = measureSignatures()
const cluster = await Cluster.create({ markets: ISOLATED_MARKETS, accounts, orders, tail })
try {
  const started = performance.now()
  const member = await cluster.start()
  const recoveredMs = performance.now() - started
  const outside = await Outside.open(cluster, ISOLATED_MARKETS)
  const api = await cluster.connect('api')
  const first = new Placements(99_000_000).item({
    marketId: MARKET.spec.marketId,
    userId: 1,
    side: 'LONG',
    type: 'LIMIT',
    price: Math.round(MARKET.oracle * 0.97),
    steps: 100,
  })
  const refusal = refusalOf(await api.submit<'orders'>(ordersOf(1, [first]), BUDGET_MS))
  if (refusal !== null) throw new Error(`the first placement was refused: ${refusal}`)
  const acceptedMs = performance.now() - started
  const processor = processorSeconds(member.pid)
  await sleep(REST_MS)
  const { resident, peak } = member.memory()
  const bytes = await placeAndCancel(cluster)
  outside.stop()
  const megabytes = (count: number): number => Math.round(count / 1e6)
  const figures = {
    accounts,
    orders,
    tail,
    'checkpoint loaded, s': Number((recoveredMs / 1000).toFixed(1)),
    'placement accepted, s': Number((acceptedMs / 1000).toFixed(1)),
    'processor time, s': Number(processor.toFixed(1)),
    'memory, MB': megabytes(resident),
    'memory, peak, MB': megabytes(peak),
    'journal bytes per placed and cancelled order': Math.round(bytes.json),
    'stored, compressed': Math.round(bytes.stored),
    recoveries_per_second: Math.round(bare),
    load: Number((loadavg()[0] as number).toFixed(1)),
  }
  console.table(figures)
  console.log(JSON.stringify({ bench: 'cold-start', ...figures }))
} finally {
  await cluster.stop()
}
