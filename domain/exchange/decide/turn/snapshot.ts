/** One market of a state in the types of its turn rules. */

import type { MarketSnapshot } from '../../../auction/market-snapshot.ts'
import type { SettlementBacklog } from '../../../auction/settlement-pace.ts'
import { invariant } from '../../../invariant.ts'
import type { MarketSpec } from '../../../market/market.ts'
import type { ProtectionSchedule } from '../../../market/price-protection.ts'
import type { UsedReport } from '../../../prices/report.ts'
import type {
  Address,
  MarketId,
  Millis,
  Price,
  Quote,
  Rate,
  Seconds,
  Seq,
  Ticks,
  UserId,
} from '../../../units.ts'
import type { Inputs } from '../../inputs.ts'
import { listedSpec, marketFunding, marketTerms } from '../../market-terms.ts'
import { pendingActions, singleActionOf } from '../../queued-actions.ts'
import type { ExchangeState } from '../../state.ts'
import { BANK } from '../../tables/chain.ts'
import {
  type ActionRow,
  actionKey,
  batchKey,
  type MarketRow,
  type ProgressRow,
} from '../../tables/markets.ts'

// ---------------------------------------------------------------------- terms

const scheduleOf = (row: MarketRow): ProtectionSchedule => ({
  inForce: BigInt(row.price_protection) as Rate,
  next:
    row.next_price_protection === null || row.next_price_protection_at === null
      ? null
      : { width: BigInt(row.next_price_protection) as Rate, at: row.next_price_protection_at as Millis },
})

/** Specification at the market's listing. */
export function specOf(state: ExchangeState, marketId: MarketId): MarketSpec {
  const listed = listedSpec(state, marketId)
  invariant(listed !== undefined, `a turn is that of a listed market, received ${marketId}`)
  return listed
}

// ---------------------------------------------------------------------- queue

/**
 * Last report of the market's own feed used by a queued or mined action.
 * A finalization uses another feed. Released actions are older than the newest mined action of their kind.
 */
function usedReportOf(state: ExchangeState, marketId: MarketId, lastQueueNo: number): UsedReport | null {
  for (let queueNo = lastQueueNo; queueNo > 0; queueNo--) {
    const action = state.actions.get(actionKey(marketId, queueNo))
    if (action === undefined || action.kind === 'finalize_market') continue
    if (action.status === 'REVERTED' || action.status === 'VOIDED') continue
    if (action.batch_id === null) {
      const { price, observedAt } = singleActionOf(action).report
      return { price, observedAt }
    }
    const batch = state.batches.need(batchKey(marketId, action.batch_id))
    return { price: BigInt(batch.oracle_price) as Price, observedAt: batch.oracle_at as Millis }
  }
  return null
}

function backlogOf(pending: readonly ActionRow[], queued: number): SettlementBacklog {
  const oldest = pending.reduce<number | null>(
    (least, { as_of }) => (least === null || as_of < least ? as_of : least),
    null,
  )
  return { unsettled: pending.length, queued, oldest: oldest as Millis | null }
}

// ---------------------------------------------------------------------- snapshot

const lastPriceOf = ({ lastPrice, lastPriceAt }: ProgressRow): MarketSnapshot['lastPrice'] =>
  lastPrice === null || lastPriceAt === null ? null : { price: lastPrice as Ticks, at: lastPriceAt }

const backstopOf = ({ backstop, backstop_cap }: MarketRow): MarketSnapshot['backstop'] =>
  backstop === null ? null : { address: backstop as Address, cap: BigInt(backstop_cap) as Quote }

export function snapshotOf(state: ExchangeState, inputs: Inputs, marketId: MarketId): MarketSnapshot {
  const market = state.markets.need(String(marketId))
  const progress = state.progress.need(marketId)
  const pending = pendingActions(state, marketId)
  const adjusting = [...state.marketIndexes.adjusting(marketId)]
  const touched = new Set<UserId>()
  for (const { touches } of pending) for (const account of touches) touched.add(account as UserId)
  for (const { user_id } of adjusting) touched.add(user_id as UserId)
  return {
    now: inputs.now,
    head: state.heads.get(marketId)?.seq ?? (0 as Seq),
    terms: marketTerms(state, marketId),
    reservingAfter: progress.reservingAfter,
    lastBatchId: progress.lastBatchId,
    lastBatchHead: progress.lastBatchHead,
    lastAsOf: progress.lastAsOf,
    priceProtection: scheduleOf(market),
    impactNotional: market.impact_notional === null ? null : (BigInt(market.impact_notional) as Quote),
    lastPrice: lastPriceOf(progress),
    heldMark: progress.isMarkHeld ? progress.heldMark : null,
    report: inputs.report(marketId),
    usedReport: usedReportOf(state, marketId, progress.lastQueueNo),
    funding: marketFunding(state, marketId),
    session: inputs.session(marketId),
    touched,
    removals: adjusting.reduce((sum, { pays }) => sum + BigInt(pays), 0n) as Quote,
    pauseEndsAt: (state.bank.get(BANK)?.pause_ends_at ?? 0) as Seconds,
    backstop: backstopOf(market),
    backlog: backlogOf(pending, progress.lastQueueNo),
  }
}
