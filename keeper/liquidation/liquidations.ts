/**
 * Liquidates a market's positions, before each auction: on the report and at the time that the auction will use, so that a forced order joins
 * the next batch. A step is one transaction under the shard's lock. What runs is in the database: another owner continues.
 */
import type { Fence } from '../../db/fence.ts'
import { termsAt } from '../../domain/market/in-force.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import type { Order } from '../../domain/orders/order.ts'
import { fundingIndexAt } from '../../domain/prices/funding-state.ts'
import { graceEndsAt } from '../../domain/risk/bank-pause.ts'
import { isOver } from '../../domain/risk/ending.ts'
import { endedPlan } from '../../domain/risk/liquidation-plan.ts'
import type { RunningLiquidation } from '../../domain/risk/running-liquidation.ts'
import type { RiskPrices } from '../../domain/risk/score-bounds.ts'
import type { Millis, OrderHash, Seq, UserId } from '../../domain/units.ts'
import type { KillPointHook } from '../../service/kill-point.ts'
import {
  type BatchBasis,
  batchBasis,
  catchUp,
  type MarketMemory,
  type MarketView,
} from '../auction/market-memory.ts'
import type { MarketSnapshot } from '../auction/ports.ts'
import { chooseCases } from './cases.ts'
import type { LiquidationStore, LiquidationTransaction } from './ports.ts'
import { LiquidationTurn } from './turn.ts'

export interface LiquidationPorts {
  readonly liquidations: LiquidationStore
  /** Block time of the chain's head; null while no node responds. */
  readonly headTime: () => Millis | null
  readonly killPoint: KillPointHook<'after-liquidation-step' | 'after-liquidation-action'>
  /** The digest of a forced order of the market. */
  readonly hashOrder: (order: Order, spec: MarketSpec) => OrderHash
  /** Wakes the market's settlement. */
  readonly wakeSettlement: () => void
}

export interface Liquidations {
  /**
   * Takes the next step of every liquidation. While no batch can run (the oracle price is stale, no node responds, settlement is behind, the
   * market is not open) nothing starts and nothing goes on; what runs resumes with the first batch. Does nothing until the auction has
   * loaded the book.
   */
  update(fence: Fence): Promise<void>
}

export function createLiquidations(
  ports: LiquidationPorts,
  spec: MarketSpec,
  memory: MarketMemory,
): Liquidations {
  /** Whether a liquidation runs; null if that is not known. */
  let isRunning: boolean | null = null
  /** The number of the last liquidation on which a transaction decided. After a restart the oldest come first. */
  let last = 0 as Seq

  async function step(transaction: LiquidationTransaction, before: MarketView): Promise<TurnResult> {
    const { snapshot } = transaction
    const { feed, positions } = await catchUp(spec, transaction, before)
    const view: MarketView = { ...before, feed, positions, seq: snapshot.head }
    const basis = batchBasis(spec, memory, snapshot, ports.headTime())
    const running = await transaction.running()
    const idle = { view, isRunning: running.length > 0, actions: 0, hasWritten: false }
    if (isClosed(spec, snapshot)) return { ...idle, hasWritten: await close(transaction, running) }
    if (basis === null) return idle
    const prices = pricesOf(basis, snapshot)
    const cases = chooseCases({
      ...{ running, last, forced: forcedAccounts(view) },
      due: dueAccounts(view, { prices, snapshot, asOf: basis.asOf }),
      ordersOf: (account) => feed.ordersOf(account).length,
    })
    last = cases.last
    const hashOf = (order: Order): OrderHash => ports.hashOrder(order, spec)
    const turn = new LiquidationTurn({ transaction, view, prices, basis, running, hashOf })
    const plan = await turn.run(cases.accounts)
    if (plan.rows.length + plan.running.length === 0) return idle
    await transaction.saveLiquidations(plan)
    return { view, isRunning: true, actions: plan.actions.length, hasWritten: true }
  }

  /** Whether a transaction has something to decide on. */
  async function isDue(view: MarketView): Promise<boolean> {
    const snapshot = await ports.liquidations.snapshot(spec)
    const basis = batchBasis(spec, memory, snapshot, ports.headTime())
    if (basis === null && !isClosed(spec, snapshot)) return false
    isRunning ??= await ports.liquidations.isRunning(spec.marketId)
    if (basis === null) return isRunning
    if (isRunning || forcedAccounts(view).length > 0) return true
    const due = dueAccounts(view, { prices: pricesOf(basis, snapshot), snapshot, asOf: basis.asOf })
    return due.next().done !== true
  }

  return {
    async update(fence) {
      const { view } = memory
      if (view === null || !(await isDue(view))) return
      // Restored only if the transaction commits.
      memory.view = null
      isRunning = null
      const turn = await ports.liquidations.transaction(spec, fence, (transaction) => step(transaction, view))
      memory.view = turn.view
      // Read again after the last step: it may have ended all of them.
      isRunning = turn.hasWritten ? null : turn.isRunning
      if (turn.hasWritten) ports.killPoint('after-liquidation-step')
      if (turn.actions === 0) return
      ports.killPoint('after-liquidation-action')
      ports.wakeSettlement()
    },
  }
}

interface TurnResult {
  readonly view: MarketView
  readonly isRunning: boolean
  /** Single actions that were queued. */
  readonly actions: number
  readonly hasWritten: boolean
}

/** Its positions are settled at the final price. */
const isClosed = (spec: MarketSpec, { terms, now }: MarketSnapshot): boolean =>
  isOver(termsAt(spec, terms, now).mode)

async function close(
  transaction: LiquidationTransaction,
  running: readonly RunningLiquidation[],
): Promise<boolean> {
  if (running.length === 0) return false
  await transaction.saveLiquidations(endedPlan(running, transaction.snapshot.now))
  return true
}

interface DueTerms {
  readonly prices: RiskPrices
  readonly snapshot: MarketSnapshot
  readonly asOf: Millis
}

const pricesOf = ({ terms, asOf, report }: BatchBasis, { funding }: MarketSnapshot): RiskPrices => ({
  spec: terms.spec,
  index: fundingIndexAt(funding, asOf),
  oracle: report.price,
})

/** Accounts below the threshold that no grace spares and no queued action touches, from the one farthest below it. */
function* dueAccounts(view: MarketView, { prices, snapshot, asOf }: DueTerms): Generator<UserId> {
  const { scanner, of } = view.positions
  const isGrace = asOf < graceEndsAt(snapshot.pauseEndsAt)
  const accounts = isGrace ? scanner.withoutEquity(prices, of) : scanner.liquidatable(prices, of)
  for (const account of accounts) if (!snapshot.touched.has(account)) yield account
}

/** Of the forced orders in the book. One without a liquidation was returned to the book by a void or a rollback. */
const forcedAccounts = ({ feed: { book } }: MarketView): UserId[] =>
  [...book.marketOrders('LONG'), ...book.marketOrders('SHORT')]
    .filter(({ forced }) => forced)
    .map(({ account }) => account)
