/** The flow of a run's orders: random, with the distributions of recorded trading, or a recording that repeats. */
import { join } from 'node:path'
import { type Flow, type PlannedOrder, planMix } from '../../bench/mix/flow.ts'
import { planRecorded } from '../../bench/mix/recorded.ts'
import { fromE18 } from '../../client/decimals.ts'
import type { NewOrder } from '../../client/order-factory.ts'
import { latestReport } from '../../db/oracle-reports.ts'
import { type MarketSpec, priceOf, quantityOf } from '../../domain/market/market.ts'
import type { Steps, Ticks } from '../../domain/units.ts'
import type { Audited } from './exchange.ts'
import type { PlannedRun } from './plan.ts'

/** The accounts before have the pairs of orders. */
export const FLOW_ACCOUNTS = { first: 8, count: 4 } as const
export const SAMPLE = join(import.meta.dirname, '../stack/fixtures/order-log.csv')

const RATE = 5
const SECONDS = 120
/** Between the last action of a recording and its repetition. */
const PAUSE_MS = 500
/** So that the accounts have margin for a whole campaign, whatever sizes a recording has. */
const MOST_STEPS = 100

/** `recording`: a file of recorded order flow. */
export async function flowOf(
  { load, seed }: PlannedRun,
  exchange: Pick<Audited, 'db' | 'specs'>,
  recording: string,
): Promise<Flow> {
  const markets = await marketsNow(exchange)
  const accounts = FLOW_ACCOUNTS.count
  if (load !== 'recorded') return bounded(planMix(markets, { rate: RATE, seconds: SECONDS, accounts, seed }))
  const [first] = markets
  if (first === undefined) throw new Error('the exchange has no market')
  const once = await planRecorded(first, { file: recording, speed: 1, seconds: SECONDS, accounts })
  return bounded(repeated(once))
}

/** The markets with their present oracle prices. */
async function marketsNow({ db, specs }: Pick<Audited, 'db' | 'specs'>) {
  return Promise.all(
    specs.map(async (spec) => {
      const report = await latestReport(db, { marketId: spec.marketId, feed: 'index' })
      if (report === null) throw new Error(`market ${spec.marketId} has no price`)
      return { spec, oracle: Number(report.price / spec.tick) as Ticks }
    }),
  )
}

function repeated({ orders, cancels }: Flow): Flow {
  const period = Math.max(0, ...[...orders, ...cancels].map(({ at }) => at)) + PAUSE_MS
  const times = Array.from({ length: Math.ceil((1_000 * SECONDS) / period) }, (_, index) => index)
  return {
    orders: times.flatMap((time) => orders.map((order) => ({ ...order, at: order.at + time * period }))),
    cancels: times.flatMap((time) =>
      cancels.map((cancel) => ({
        ...cancel,
        at: cancel.at + time * period,
        order: cancel.order + time * orders.length,
      })),
    ),
  }
}

const bounded = ({ orders, cancels }: Flow): Flow => ({
  orders: orders.map((order) => ({ ...order, steps: Math.min(order.steps, MOST_STEPS) })),
  cancels,
})

export function orderOf(
  { market, side, type, price, trigger, steps, leverage }: PlannedOrder,
  specs: readonly MarketSpec[],
): NewOrder {
  const spec = specs[market] as MarketSpec
  return {
    marketId: spec.marketId,
    side,
    type,
    leverage,
    quantity: fromE18(quantityOf(spec, Math.max(steps, spec.minQuantity) as Steps)),
    ...(price > 0 && { price: fromE18(priceOf(spec, price as Ticks)) }),
    ...(trigger > 0 && { trigger: fromE18(priceOf(spec, trigger as Ticks)) }),
  }
}
