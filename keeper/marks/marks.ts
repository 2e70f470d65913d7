/** A market's mark price: published once a second if it has changed, and at once if it triggers conditional orders. */

import type { Fence } from '../../db/fence.ts'
import type { MarketBook } from '../../domain/book/market-book.ts'
import type { WaitingOrder } from '../../domain/book/trigger-book.ts'
import { reportRulesOf, type TermsInForce, termsAt } from '../../domain/market/in-force.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import { averagesChange, type PriceAverages } from '../../domain/prices/averages.ts'
import { hasFunding } from '../../domain/prices/funding.ts'
import { isInSession } from '../../domain/prices/funding-plan.ts'
import { fundingIndexAt } from '../../domain/prices/funding-state.ts'
import { bestPrices, markPrice, nextMarkBasis } from '../../domain/prices/mark.ts'
import { type MarketPrices, planMark } from '../../domain/prices/mark-plan.ts'
import { addPremium, isSampleDue, samplePremium } from '../../domain/prices/premium.ts'
import type { OracleReport } from '../../domain/settlement/settlement.ts'
import type { Millis, Quote } from '../../domain/units.ts'
import { type Clock, elapsed } from '../../service/clock.ts'
import {
  afterNeutralRows,
  batchBasis,
  catchUp,
  type MarketMemory,
  type MarketView,
} from '../auction/market-memory.ts'
import type { AuctionStore, MarketSnapshot, MarketTransaction } from '../auction/ports.ts'
import type { Metrics } from '../ports.ts'
import { MAX_ORDERS_PER_TURN } from '../turn-bound.ts'

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

interface QuotedMark {
  readonly prices: MarketPrices
  readonly averages: PriceAverages
}

const PUBLISH_INTERVAL_MS = 1000
/** Unchanged prices are published again, with a newer time, at this interval. */
const REPUBLISH_MS = 5000
const NO_FUNDS = { free: 0n as Quote, reserved: 0n as Quote }

/**
 * Whether a premium can be sampled: a batch can run now, and funding accrues. While none can, quotes are at no risk of being filled, and
 * would decide the rate at no cost.
 */
function isSampled(
  spec: MarketSpec,
  memory: MarketMemory,
  snapshot: MarketSnapshot,
  headTime: Millis | null,
): boolean {
  const basis = batchBasis(spec, memory, snapshot, headTime)
  if (basis === null) return false
  const rules = reportRulesOf(basis.terms, memory.rules)
  return (
    !basis.terms.spec.fundingSession || (rules !== null && isInSession(snapshot.session, rules, snapshot.now))
  )
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

  function quote(
    { feed: { book }, positions }: Pick<MarketView, 'feed' | 'positions'>,
    snapshot: MarketSnapshot,
    oracle: OracleReport,
    before: PriceAverages,
  ): QuotedMark {
    const { lastPrice, heldMark, funding, now } = snapshot
    const terms = termsAt(spec, snapshot.terms, now)
    const market = { spec: terms.reserving, oracle: oracle.price, now }
    const fundingIndex = fundingIndexAt(funding, now)
    const quotes = { ...market, book, positions: positions.of, fundingIndex, excluded: snapshot.touched }
    const input = { ...market, best: bestPrices(quotes), last: lastPrice }
    const basis = nextMarkBasis(before.basis, input)
    const isDue = hasFunding(terms.spec) && isSampleDue(before.premium, now)
    const sample =
      isDue && isSampled(spec, memory, snapshot, headTime())
        ? samplePremium(quotes, snapshot.impactNotional)
        : null
    const premium = isDue ? addPremium(before.premium, sample, now) : before.premium
    return {
      prices: { oracle, mark: heldMark ?? markPrice(input, basis), at: now },
      averages: { basis, premium },
    }
  }

  /** The orders whose trigger the mark has reached, and the terms of the next batch; null if no batch can run. */
  function reachedBy(
    { mark }: MarketPrices,
    { waiting }: MarketBook,
    snapshot: MarketSnapshot,
  ): { readonly terms: TermsInForce; readonly orders: readonly WaitingOrder[] } | null {
    const basis = batchBasis(spec, memory, snapshot, headTime())
    return basis && { terms: basis.terms, orders: waiting.triggered(mark, spec.tick) }
  }

  async function write(
    transaction: MarketTransaction,
    view: MarketView,
    averagesBefore: PriceAverages,
  ): Promise<MarketView> {
    const { snapshot } = transaction
    const { feed, positions } = view
    if (snapshot.report === null) return view
    const quoted = quote(view, snapshot, snapshot.report, averagesBefore)
    const { prices } = quoted
    const reached = reachedBy(prices, feed, snapshot)
    const triggered = reached?.orders.slice(0, MAX_ORDERS_PER_TURN) ?? []
    const accounts = new Set(triggered.map(({ account }) => account))
    const funds = await transaction.funds(accounts)
    const stored = await transaction.averages()
    const plan = planMark({
      ...{ prices, head: snapshot.head, batchId: snapshot.lastBatchId + 1 },
      spec: (reached?.terms ?? termsAt(spec, snapshot.terms, snapshot.now)).reserving,
      triggered: triggered.map(({ seq }) => seq),
      orders: await transaction.liveOrders(accounts),
      positions: positions.of,
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
      const quoted = quote(view, snapshot, snapshot.report, stored)
      const { prices } = quoted
      averages = quoted.averages
      const isWanted = isDue && (last === null || hasChanged(last, prices))
      const reached = reachedBy(prices, view.feed, snapshot)
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

const hasChanged = (last: MarketPrices, { oracle, mark }: MarketPrices): boolean =>
  mark !== last.mark ||
  oracle.price !== last.oracle.price ||
  oracle.observedAt - last.oracle.observedAt >= REPUBLISH_MS
