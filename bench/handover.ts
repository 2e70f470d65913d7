/**
 * Measures how long trading stops when the engine's owner is killed, frozen (SIGSTOP) or stopped: until the next
 * accepted placement, and the next committed batch.
 */
// npm run bench:handover -- [--orders 100000] [--accounts 10000] [--rounds 3]
import { loadavg } from 'node:os'
import { performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { argumentsOf, wholeNumber, withDefault } from '../service/command-line.ts'
import { Cluster, type Member } from './engine/cluster.ts'
import { Outside } from './engine/outside.ts'
import { ordersOf, Placements, refusalOf } from './engine/placements.ts'
import { ISOLATED_MARKETS } from './intake/isolated-target.ts'
import type { BenchMarket } from './intake/orders.ts'

const { orders, accounts, rounds } = argumentsOf({
  command: 'npm run bench:handover --',
  flags: {
    orders: withDefault(wholeNumber('live orders', { least: 1 }), 100_000),
    accounts: withDefault(wholeNumber('accounts', { least: 64 }), 10_000),
    rounds: withDefault(wholeNumber('rounds, each with one event of every kind', { least: 1 }), 3),
  },
})

const EVENTS = {
  killed: { target: [3_000, 3_000], act: (owner: Member) => owner.signal('SIGKILL') },
  frozen: { target: [4_000, 4_000], act: (owner: Member) => owner.signal('SIGSTOP') },
  'planned handover': { target: [300, 300], act: (owner: Member) => owner.signal('SIGTERM') },
} as const
type Event = keyof typeof EVENTS

const MARKET = ISOLATED_MARKETS[0] as BenchMarket
const PLACE_EVERY_MS = 10
const BATCH_POLL_MS = 5
const CALM_MS = 2_000
const BUDGET_MS = 10_000
const BOUND_MS = 30_000
/** The traders of the flow, so that no account trades with itself. */
const TRADERS = 64

interface Acceptance {
  readonly sentAt: number
  readonly at: number
}

/** Crossing orders at a steady rate, whatever happens to earlier orders. */
class Flow {
  readonly accepted: Acceptance[] = []
  readonly refused = new Map<string, number>()
  readonly #placements = new Placements()
  #sent = 0

  start(api: Awaited<ReturnType<Cluster['connect']>>): () => void {
    const timer = setInterval(() => {
      const number = this.#sent++
      const side = number % 2 === 0 ? 'LONG' : 'SHORT'
      const userId = 1 + (number % TRADERS)
      const price = Math.round(MARKET.oracle * (side === 'LONG' ? 1.001 : 0.999))
      const terms = { marketId: MARKET.spec.marketId, userId, side, type: 'LIMIT', price, steps: 10 } as const
      const sentAt = performance.now()
      void api.submit<'orders'>(ordersOf(userId, [this.#placements.item(terms)]), BUDGET_MS).then((reply) => {
        const refusal = refusalOf(reply)
        if (refusal === null) this.accepted.push({ sentAt, at: performance.now() })
        else this.refused.set(refusal, (this.refused.get(refusal) ?? 0) + 1)
      })
    }, PLACE_EVERY_MS)
    return () => clearInterval(timer)
  }
}

async function lastBatch({ pool }: Cluster): Promise<number> {
  const sql = 'select coalesce(max(batch_id), 0)::int as last from batches where market_id = $1'
  return (await pool.query<{ last: number }>(sql, [MARKET.spec.marketId])).rows[0]?.last ?? 0
}

/** Reads until there is a value. */
async function until<Value>(read: () => Value | undefined | Promise<Value | undefined>): Promise<Value> {
  const started = performance.now()
  for (;;) {
    const value = await read()
    if (value !== undefined) return value
    if (performance.now() - started > BOUND_MS) throw new Error(`nothing happened within ${BOUND_MS} ms`)
    await sleep(BATCH_POLL_MS)
  }
}

interface Interruption {
  readonly event: Event
  readonly placementMs: number
  readonly batchMs: number
  readonly refused: number
}

async function interrupt(cluster: Cluster, owner: Member, event: Event): Promise<Interruption> {
  const flow = new Flow()
  const outside = await Outside.open(cluster, [MARKET])
  const stop = flow.start(await cluster.connect('api'))
  try {
    await until(async () => ((await lastBatch(cluster)) > 0 && flow.accepted.length > 10 ? true : undefined))
    await sleep(CALM_MS)
    flow.refused.clear()
    const at = performance.now()
    EVENTS[event].act(owner)
    // Batches of the former owner may still be on their way to the database.
    const isNext = ({ sentAt }: Acceptance): boolean => sentAt >= at
    const firstBatch = nextBatch(cluster)
    const { at: acceptedAt } = await until(() => flow.accepted.find(isNext))
    const batchAt = await firstBatch
    return {
      event,
      placementMs: acceptedAt - at,
      batchMs: batchAt - at,
      refused: [...flow.refused.values()].reduce((sum, count) => sum + count, 0),
    }
  } finally {
    stop()
    outside.stop()
    await owner.end('SIGKILL')
  }
}

/** When a batch of the new owner is committed: its group has another token. */
async function nextBatch({ pool }: Cluster): Promise<number> {
  const before = await headOf(pool)
  const sql = `select 1 from engine_groups where number > $1 and token > $2 and rows::text like '%"batch_cleared"%' limit 1`
  return until(async () => {
    const { rowCount } = await pool.query(sql, [before.number, before.token])
    return rowCount === 1 ? performance.now() : undefined
  })
}

async function headOf(pool: Cluster['pool']): Promise<{ number: number; token: number }> {
  const { rows } = await pool.query('select number, token from engine_groups order by number desc limit 1')
  return rows[0] as { number: number; token: number }
}

/** A database of its own: nothing settles the parts, and a market with old parts makes no further batch. */
async function measure(event: Event): Promise<Interruption> {
  const cluster = await Cluster.create({ markets: ISOLATED_MARKETS, accounts, orders, tail: 0 })
  try {
    const owner = await cluster.start()
    await cluster.start()
    return await interrupt(cluster, owner, event)
  } finally {
    await cluster.stop()
  }
}

const interruptions: Interruption[] = []
for (let round = 0; round < rounds; round++)
  for (const event of Object.keys(EVENTS) as Event[]) interruptions.push(await measure(event))

const most = (event: Event, of: (one: Interruption) => number): number =>
  Math.max(...interruptions.filter((one) => one.event === event).map(of))
const figures = (Object.keys(EVENTS) as Event[]).map((event) => ({
  event,
  'placement accepted, longest': Math.round(most(event, ({ placementMs }) => placementMs)),
  'batch committed, longest': Math.round(most(event, ({ batchMs }) => batchMs)),
  refused: Math.round(most(event, ({ refused }) => refused)),
  target: EVENTS[event].target[0],
}))
console.table(figures)
const load = Number((loadavg()[0] as number).toFixed(1))
console.log(JSON.stringify({ bench: 'handover', orders, accounts, rounds, load, figures, interruptions }))
