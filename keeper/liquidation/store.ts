/** The reads and writes of a market's liquidations in Postgres. */
import { isSingle, loadActions, queueSingle, readQueueTail } from '../../db/actions.ts'
import type { Db, Tx } from '../../db/client.ts'
import { DATABASE_NOW, type DatabaseTime } from '../../db/clock.ts'
import { deleteLiquidations, loadLiquidations, putLiquidations } from '../../db/liquidations.ts'
import { recordAsOf } from '../../db/markets.ts'
import { keepReport } from '../../db/oracle-reports.ts'
import { countReduceOnly, insertForced } from '../../db/orders.ts'
import { loadAddresses } from '../../db/users.ts'
import { enqueue } from '../../domain/actions/queue.ts'
import { invariant } from '../../domain/invariant.ts'
import type { ActionQueued } from '../../domain/journal/queue-rows.ts'
import { actionOutcomeOf } from '../../domain/risk/liquidation-outcome.ts'
import type { LiquidationPlan } from '../../domain/risk/liquidation-plan.ts'
import type { MarketId, Millis } from '../../domain/units.ts'
import type { MarketTransaction } from '../auction/ports.ts'
import { inMarketTransaction, readSnapshot } from '../auction/store.ts'
import type { LiquidationStore, LiquidationTransaction } from './ports.ts'

/** The plan was made for the end of the queue, which the lock of the shard keeps. */
async function queueActions(
  tx: Tx,
  marketId: MarketId,
  { actions }: LiquidationPlan,
): Promise<readonly ActionQueued[]> {
  const rows: ActionQueued[] = []
  if (actions.length === 0) return rows
  let tail = await readQueueTail(tx, marketId)
  for (const action of actions) {
    const verdict = enqueue(tail, action)
    invariant(verdict.ok, 'a liquidation is decided on terms that its market can queue')
    tail = verdict.value
    rows.push(await queueSingle(tx, marketId, action))
  }
  await recordAsOf(tx, marketId, tail.lastAsOf)
  return rows
}

async function save(tx: Tx, transaction: MarketTransaction, marketId: MarketId, plan: LiquidationPlan) {
  const { report, now } = transaction.snapshot
  if (report !== null) await keepReport(tx, { marketId, feed: 'index' }, report)
  const queued = await queueActions(tx, marketId, plan)
  const forced = plan.rows.flatMap((row) => (row.kind === 'order_placed' ? [row] : []))
  await insertForced(tx, marketId, forced)
  const progressed = plan.running.map((running) => ({ kind: 'liquidation_progressed' as const, running }))
  // The plan numbers its own rows from the head on, so that they come first.
  const rows = [...plan.rows, ...queued, ...progressed]
  await transaction.save({ ...plan, rows, asOf: now as Millis, batch: null })
  await putLiquidations(tx, marketId, plan.running)
  await deleteLiquidations(tx, marketId, plan.ended)
}

const open = (tx: Tx, transaction: MarketTransaction, marketId: MarketId): LiquidationTransaction => ({
  ...transaction,
  running: (accounts) => loadLiquidations(tx, marketId, accounts),
  async outcomes(queueNos) {
    const rows = (await loadActions(tx, marketId, queueNos)).filter(isSingle)
    return new Map(rows.map((row) => [row.queue_no, actionOutcomeOf(row)]))
  },
  addresses: (accounts) => loadAddresses(tx, accounts),
  reduceOnlyOrders: (accounts) => countReduceOnly(tx, marketId, accounts),
  saveLiquidations: (plan) => save(tx, transaction, marketId, plan),
})

/** `now`: the time of each snapshot; tests set it. */
export const createLiquidationStore = (db: Db, now: DatabaseTime = () => DATABASE_NOW): LiquidationStore => ({
  snapshot: (spec) => readSnapshot(db, spec, now),
  transaction: (spec, fence, work) =>
    inMarketTransaction(db, spec, { fence, now }, (transaction, tx) =>
      work(open(tx, transaction, spec.marketId)),
    ),
})
