/**
 * Liquidates a market's positions, before each auction: on the report and at the time that the auction will use, so that a forced order joins
 * the next batch. A step is one transaction under the shard's lock. What runs is in the database: another owner continues.
 */
import type { Fence } from '../../db/fence.ts'
import { actionBasis } from '../../domain/auction/action-basis.ts'
import { MAX_ORDERS_PER_TURN } from '../../domain/auction/turn-bound.ts'
import type { MarketBook } from '../../domain/book/market-book.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import type { Order } from '../../domain/orders/order.ts'
import { chooseCases } from '../../domain/risk/liquidation-cases.ts'
import { dueAccounts, isClosedMarket, riskPricesOf } from '../../domain/risk/liquidation-due.ts'
import { endedPlan, type LiquidationPlan } from '../../domain/risk/liquidation-plan.ts'
import type { Millis, OrderHash, Seq } from '../../domain/units.ts'
import type { KillPointHook } from '../../service/kill-point.ts'
import { catchUp, type MarketMemory, type MarketView } from '../auction/market-memory.ts'
import type { Metrics } from '../ports.ts'
import type { LiquidationStore, LiquidationTransaction } from './ports.ts'
import { LiquidationTurn } from './turn.ts'

export interface LiquidationPorts {
  readonly liquidations: LiquidationStore
  /** Block time of the chain's head; null while no node responds. */
  readonly headTime: () => Millis | null
  readonly metrics: Pick<Metrics, 'liquidationFailed'>
  readonly killPoint: KillPointHook<'after-liquidation-step' | 'after-liquidation-action'>
  /** The digest of a forced order of the market. */
  readonly hashOrder: (order: Order, spec: MarketSpec) => OrderHash
  /** Wakes the market's settlement. */
  readonly wakeSettlement: () => void
}

export interface Liquidations {
  /**
   * Takes the next step of every liquidation. While the contract would accept none (the oracle price is stale, no node responds, the market
   * is halted or closed), and while settlement is behind, nothing starts and nothing goes on; then what runs resumes. Does nothing until
   * the auction has loaded the book.
   */
  update(fence: Fence): Promise<void>
}

export function createLiquidations(
  ports: LiquidationPorts,
  spec: MarketSpec,
  memory: MarketMemory,
): Liquidations {
  /** The number of the last liquidation on which a transaction decided. After a restart the oldest come first. */
  let last = 0 as Seq

  async function step(transaction: LiquidationTransaction, view: MarketView): Promise<TurnResult> {
    const { snapshot } = transaction
    const { feed } = view
    const basis = actionBasis(spec, memory, snapshot, ports.headTime())
    if (isClosedMarket(spec, snapshot)) return { view, plan: await close(transaction, feed) }
    if (basis === null) return { view, plan: null }
    const prices = riskPricesOf(basis, snapshot)
    const cases = chooseCases({
      running: feed.liquidating,
      last,
      forced: feed.forcedAccounts(),
      due: dueAccounts(view.positions, { prices, snapshot, asOf: basis.asOf }),
      ordersOf: (account) => feed.ordersOf(account).length,
    })
    last = cases.last
    const hashOf = (order: Order): OrderHash => ports.hashOrder(order, spec)
    const running = await transaction.running(cases.accounts)
    const turn = new LiquidationTurn({ transaction, view, prices, basis, running, hashOf })
    const plan = await turn.run(cases.accounts)
    if (plan.rows.length + plan.running.length === 0) return { view, plan: null }
    await transaction.saveLiquidations(plan)
    return { view, plan }
  }

  /** Whether a transaction has something to decide on. */
  async function isDue(view: MarketView): Promise<boolean> {
    const snapshot = await ports.liquidations.snapshot(spec)
    const basis = actionBasis(spec, memory, snapshot, ports.headTime())
    const runs = view.feed.liquidating.size > 0
    if (basis === null) return runs && isClosedMarket(spec, snapshot)
    if (runs || view.feed.forcedAccounts().length > 0) return true
    const due = dueAccounts(view.positions, {
      prices: riskPricesOf(basis, snapshot),
      snapshot,
      asOf: basis.asOf,
    })
    return due.next().done !== true
  }

  return {
    async update(fence) {
      const { view } = memory
      if (view === null || !(await isDue(view))) return
      // Restored only if the transaction commits.
      memory.view = null
      let known = view
      const turn = await ports.liquidations.transaction(spec, fence, async (transaction) => {
        known = await catchUp(spec, transaction, known)
        return step(transaction, known)
      })
      memory.view = turn.view
      if (turn.plan === null) return
      ports.killPoint('after-liquidation-step')
      countFailures(ports.metrics, spec, turn.plan)
      if (turn.plan.actions.length === 0) return
      ports.killPoint('after-liquidation-action')
      ports.wakeSettlement()
    },
  }
}

interface TurnResult {
  readonly view: MarketView
  /** What was written; null if nothing was. */
  readonly plan: LiquidationPlan | null
}

function countFailures(
  metrics: LiquidationPorts['metrics'],
  { marketId }: MarketSpec,
  { rows }: LiquidationPlan,
): void {
  for (const row of rows) {
    if (row.kind === 'liquidation_changed' && row.step === 'failed')
      metrics.liquidationFailed(marketId, failureName(row.reason))
  }
}

/** Without the figures and accounts of the reason. */
const failureName = (reason: string): string =>
  (/^\w+( [a-z]+)*/.exec(reason)?.[0] ?? 'unknown').replaceAll(' ', '_')

/** Ends liquidations, as many as one transaction may. Null if none runs. */
async function close(
  transaction: LiquidationTransaction,
  { liquidating }: MarketBook,
): Promise<LiquidationPlan | null> {
  if (liquidating.size === 0) return null
  const running = await transaction.running([...liquidating.keys()].slice(0, MAX_ORDERS_PER_TURN))
  const plan = endedPlan(running, transaction.snapshot.now)
  await transaction.saveLiquidations(plan)
  return plan
}
