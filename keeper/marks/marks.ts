/** A market's mark price: published once a second if it has changed, and at once if it triggers conditional orders. */

import type { Fence } from '../../db/fence.ts'
import { NO_FUNDS } from '../../domain/auction/auction-turn.ts'
import type { MarketSnapshot } from '../../domain/auction/market-snapshot.ts'
import { MAX_ORDERS_PER_TURN } from '../../domain/auction/turn-bound.ts'
import { termsAt } from '../../domain/market/in-force.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import { averagesChange, type PriceAverages } from '../../domain/prices/averages.ts'
import { type MarketPrices, planMark } from '../../domain/prices/mark-plan.ts'
import {
  hasChanged,
  type MarkInput,
  PUBLISH_INTERVAL_MS,
  quoteMark,
  reachedBy,
} from '../../domain/prices/mark-turn.ts'
import type { Millis } from '../../domain/units.ts'
import { type Clock, elapsed } from '../../service/clock.ts'
import { afterNeutralRows, catchUp, type MarketMemory, type MarketView } from '../auction/market-memory.ts'
import type { AuctionStore, MarketTransaction } from '../auction/ports.ts'
import type { Metrics } from '../ports.ts'

export interface MarkPorts {
  readonly store: AuctionStore
  readonly clock: Clock
  /** Block time of the chain's head; null while no node responds. */
  readonly headTime: () => Millis | null
  readonly metrics: Pick<Metrics, 'triggered'>
}

export interface Marks {
  /**
   * Computes the mark and publishes it if due. A conditional order triggers only by a mark at which a batch can run: while the market is
   * closed, its oracle price stale or its settlement behind, the order waits, so that no stop is lost for lack of a batch. Does nothing
   * until the auction has loaded the book.
   */
  update(fence: Fence): Promise<void>
}

/**
 * The averages behind the mark and the funding rate are stored with each mark: a new owner continues from the last one. A mark that triggers
 * more orders than one transaction may change is held, in the database, until all of them are triggered: a mark that moved back, or a new
 * owner, would leave orders waiting whose trigger was reached.
 */
export function createMarks(ports: MarkPorts, spec: MarketSpec, memory: MarketMemory): Marks {
  const { store, clock, headTime } = ports
  let averages: PriceAverages | null = null
  let checkedAt = 0
  let last: MarketPrices | null = null

  const inputOf = ({ feed, positions }: MarketView, snapshot: MarketSnapshot): MarkInput => ({
    spec,
    limits: memory,
    headTime: headTime(),
    snapshot,
    live: feed,
    positions: positions.of,
  })

  async function write(
    transaction: MarketTransaction,
    view: MarketView,
    averagesBefore: PriceAverages,
  ): Promise<MarketView> {
    const { snapshot } = transaction
    if (snapshot.report === null) return view
    const input = inputOf(view, snapshot)
    const quoted = quoteMark(input, snapshot.report, averagesBefore)
    const { prices } = quoted
    const reached = reachedBy(input, prices)
    const triggered = reached?.orders.slice(0, MAX_ORDERS_PER_TURN) ?? []
    const accounts = new Set(triggered.map(({ account }) => account))
    const funds = await transaction.funds(accounts)
    const stored = await transaction.averages()
    const plan = planMark({
      ...{ prices, head: snapshot.head, batchId: snapshot.lastBatchId + 1 },
      spec: (reached?.terms ?? termsAt(spec, snapshot.terms, snapshot.now)).reserving,
      triggered: triggered.map(({ seq }) => seq),
      orders: await transaction.liveOrders(accounts),
      positions: view.positions.of,
      fundsOf: (account) => funds.get(account) ?? NO_FUNDS,
      averages: averagesChange(stored, quoted.averages),
    })
    await transaction.save(plan)
    await transaction.saveAverages(quoted.averages)
    const hasMore = reached !== null && reached.orders.length > triggered.length
    const heldMark = hasMore ? prices.mark : null
    if (reached !== null && heldMark !== snapshot.heldMark) await transaction.holdMark(heldMark)
    last = prices
    averages = quoted.averages
    ports.metrics.triggered(spec.marketId, triggered.length)
    // Prices alone: the auction after them has nothing to read.
    return triggered.length === 0 ? afterNeutralRows(view, plan.rows.length) : view
  }

  return {
    async update(fence) {
      const { view } = memory
      const isDue = elapsed(clock, checkedAt) >= PUBLISH_INTERVAL_MS
      if (view === null || (!isDue && view.feed.waiting.size === 0)) return
      const snapshot = await store.snapshot(spec)
      if (snapshot.report === null) return
      if (isDue) checkedAt = clock.now()
      const stored = averages ?? (await store.averages(spec.marketId))
      const input = inputOf(view, snapshot)
      const quoted = quoteMark(input, snapshot.report, stored)
      const { prices } = quoted
      averages = quoted.averages
      const isWanted = isDue && (last === null || hasChanged(last, prices))
      const reached = reachedBy(input, prices)
      const hasTriggers = reached !== null && (reached.orders.length > 0 || snapshot.heldMark !== null)
      if (!isWanted && !hasTriggers) return
      // Restored only if the transaction commits.
      memory.view = null
      let known = view
      memory.view = await store.transaction(spec, fence, async (transaction) => {
        known = await catchUp(spec, transaction, known)
        return write(transaction, known, quoted.averages)
      })
    },
  }
}
