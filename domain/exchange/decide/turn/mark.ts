/**
 * Publishes a market's mark: once a second if it has changed, and at once if it triggers conditional orders.
 */
import { MAX_ORDERS_PER_TURN } from '../../../auction/turn-bound.ts'
import { termsAt } from '../../../market/in-force.ts'
import { averagesChange, NO_AVERAGES, type PriceAverages } from '../../../prices/averages.ts'
import { type MarketPrices, planMark } from '../../../prices/mark-plan.ts'
import {
  hasChanged,
  type MarkInput,
  PUBLISH_INTERVAL_MS,
  type QuotedMark,
  quoteMark,
  reachedBy,
} from '../../../prices/mark-turn.ts'
import type { MarketId, Millis, Seq } from '../../../units.ts'
import type { ExchangeState } from '../../state.ts'
import type { TurnContext } from './context.ts'
import type { TurnMemory } from './memory.ts'

export interface MarkStep {
  readonly memory: TurnMemory
  /** Number of triggered orders. */
  readonly triggered: number
}

/**
 * Computes the mark and publishes it if due. Conditional orders trigger only when a batch can run, so that no stop is
 * lost. A mark is held until all orders that it triggers are triggered.
 */
export function updateMark(context: TurnContext, memory: TurnMemory): MarkStep {
  const { inputs, marketId } = context
  const { now } = inputs
  const isDue = Math.abs(now - memory.pricesCheckedAt) >= PUBLISH_INTERVAL_MS
  const report = inputs.report(marketId)
  const { live, positions } = context.market
  if (report === null || (!isDue && live.waiting.size === 0)) return { memory, triggered: 0 }
  const input: MarkInput = {
    spec: context.listed,
    limits: { pace: memory.pace, rules: inputs.reportRules(marketId) },
    headTime: inputs.headTime,
    snapshot: context.snapshot,
    live,
    positions: positions.of,
  }
  const quoted = quoteMark(input, report, memory.averages ?? storedAverages(context.state, marketId))
  const checked = {
    ...memory,
    averages: quoted.averages,
    pricesCheckedAt: isDue ? now : memory.pricesCheckedAt,
  }
  const last = memory.hasPublished ? publishedPrices(context.state, marketId) : null
  const isWanted = isDue && (last === null || hasChanged(last, quoted.prices))
  const reached = reachedBy(input, quoted.prices)
  const hasTriggers = reached !== null && (reached.orders.length > 0 || input.snapshot.heldMark !== null)
  if (!isWanted && !hasTriggers) return { memory: checked, triggered: 0 }
  return publish(context, input, quoted, { memory: checked, reached })
}

interface Publication {
  readonly memory: TurnMemory
  readonly reached: ReturnType<typeof reachedBy>
}

function publish(
  context: TurnContext,
  { spec, snapshot, positions }: MarkInput,
  { prices, averages }: QuotedMark,
  { memory, reached }: Publication,
): MarkStep {
  const { market, marketId } = context
  const triggered = reached?.orders.slice(0, MAX_ORDERS_PER_TURN) ?? []
  const { rows } = planMark({
    prices,
    head: snapshot.head,
    batchId: snapshot.lastBatchId + 1,
    spec: (reached?.terms ?? termsAt(spec, snapshot.terms, snapshot.now)).reserving,
    triggered: triggered.map(({ seq }) => seq),
    orders: market.liveOrders(new Set(triggered.map(({ account }) => account))),
    positions,
    fundsOf: market.fundsOf,
    averages: averagesChange(storedAverages(context.state, marketId), averages),
  })
  context.write(...rows)
  const hasMore = reached !== null && reached.orders.length > triggered.length
  const heldMark = hasMore ? prices.mark : null
  if (reached !== null && heldMark !== snapshot.heldMark)
    context.write({ kind: 'mark_held', mark: heldMark === null ? null : heldMark.toString() })
  const published = { ...memory, hasPublished: true }
  // True for prices alone: the next auction has nothing new to read.
  const isNeutral = triggered.length === 0 && memory.standingSeq === snapshot.head
  return {
    memory: isNeutral ? { ...published, standingSeq: (snapshot.head + rows.length) as Seq } : published,
    triggered: triggered.length,
  }
}

/** Averages as of the last published mark. */
export function storedAverages(state: ExchangeState, marketId: MarketId): PriceAverages {
  const stored = state.averages.get(String(marketId))
  if (stored === undefined) return NO_AVERAGES
  return {
    basis: { value: BigInt(stored.basis), at: stored.basis_at as Millis },
    premium: {
      at: stored.premium_at as Millis,
      intervals: stored.premium.map(([from, sampled, sum]) => ({
        from: from as Millis,
        sampled,
        sum: BigInt(sum),
      })),
    },
  }
}

/** Null before the market's first mark. */
function publishedPrices(state: ExchangeState, marketId: MarketId): MarketPrices | null {
  const { oraclePrice, oracleAt, markPrice, pricesAt } = state.progress.need(marketId)
  if (pricesAt === 0) return null
  return { oracle: { price: oraclePrice, observedAt: oracleAt }, mark: markPrice, at: pricesAt }
}
