/**
 * Ends a closed market: submits its final report, replaces a wrong report, and queues the finalization after the
 * dispute window.
 */
import type { Fence } from '../../db/fence.ts'
import { reportRulesFor, reportRulesOf, termsAt } from '../../domain/market/in-force.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import type { ReportLimits } from '../../domain/market/parameters.ts'
import { isReportUsable } from '../../domain/prices/report.ts'
import { closesAt } from '../../domain/risk/ending.ts'
import { type EndingStep, planEnding } from '../../domain/risk/ending-plan.ts'
import type { OracleReport } from '../../domain/settlement/settlement.ts'
import type { MarketId, Millis } from '../../domain/units.ts'
import { type Clock, elapsed } from '../../service/clock.ts'
import type { Logger } from '../../service/logger.ts'
import type { Calls, Chain, Metrics } from '../ports.ts'
import type { RelayerLane } from '../relayer/ports.ts'
import type { EndingMarket, EndingStore, Finalizations, SentTransaction } from './ports.ts'
import { reportPurpose } from './purposes.ts'
import type { Send } from './sender.ts'

export interface FinalPricePorts {
  readonly store: EndingStore
  readonly finalizations: Finalizations
  readonly chain: Pick<Chain, 'reportRules' | 'findCulprit'>
  readonly calls: Pick<Calls, 'submitFinalReport'>
  readonly clock: Clock
  readonly metrics: Pick<Metrics, 'finalReportMissing'>
  readonly logger: Logger
  /** Wakes the market's settlement. */
  readonly wakeSettlement: (marketId: MarketId) => void
}

/** Before another report of the same market is submitted: each costs gas, and sources may waver. */
const RESUBMIT_MS = 30_000
/** Before another finalization is queued after one that failed. */
const REQUEUE_MS = 10_000

export interface FinalPrices {
  /** One pass over a market that has closed and not ended. */
  visit(fence: Fence, market: EndingMarket, blockTime: Millis): Promise<void>
  /** No other market waits for its final price: others have ended, or a fork has taken their close back. */
  retain(marketIds: ReadonlySet<MarketId>): void
}

export function createFinalPrices(ports: FinalPricePorts, lane: RelayerLane, send: Send): FinalPrices {
  const { store, finalizations, chain, calls, clock, metrics, logger } = ports
  const rules = new Map<MarketId, ReportLimits>()
  const queuedAt = new Map<MarketId, Millis>()
  /** The last step of each market, so that only changes are logged. */
  const steps = new Map<MarketId, string>()

  /**
   * A perpetual settles at the report of its own feed nearest to the close that its contract accepts. One that was reverted, for example
   * because its round is superseded, is followed by a later one.
   */
  async function nearestReport(
    { spec, terms, ending, usedReport }: EndingMarket,
    last: SentTransaction | null,
    blockTime: Millis,
  ): Promise<OracleReport | null> {
    const since = last?.status === 'REVERTED' ? last.signedAt : (closesAt(ending) as Millis)
    const reports = await store.ownReports(spec.marketId, since)
    if (reports.length === 0) return null
    const fetched = rules.get(spec.marketId) ?? (await chain.reportRules(spec.trader))
    rules.set(spec.marketId, fetched)
    const inForce = reportRulesOf(termsAt(spec, terms, blockTime), reportRulesFor(spec, fetched))
    const isUsable = (report: OracleReport): boolean =>
      inForce !== null && isReportUsable(report, usedReport, inForce, report.observedAt)
    return reports.find(isUsable) ?? null
  }

  const reportFor = (
    market: EndingMarket,
    last: SentTransaction | null,
    blockTime: Millis,
  ): Promise<OracleReport | null> =>
    market.spec.kind === 'perpetual'
      ? nearestReport(market, last, blockTime)
      : store.finalReport(market.spec.marketId)

  function note({ spec: { marketId }, ending }: EndingMarket, step: EndingStep): void {
    metrics.finalReportMissing(marketId, ending.report === null)
    if (steps.get(marketId) === step.kind) return
    steps.set(marketId, step.kind)
    const details = { market_id: marketId, step: step.kind, ...('until' in step && { until: step.until }) }
    if (step.kind === 'unreported')
      logger.error(details, 'no final report came in time: any account can freeze the market')
    else if (step.kind === 'await_report') logger.warn(details, 'closed market waits for its final report')
    else logger.info(details, 'closed market goes on')
  }

  async function noteRevert(
    { marketId: market_id }: MarketSpec,
    { raw, block }: SentTransaction,
  ): Promise<void> {
    const { error } = block === null ? { error: 'no block' } : await chain.findCulprit(raw, block)
    logger.error({ market_id, error }, 'the last final report was reverted; submitting another one')
  }

  async function submit(
    fence: Fence,
    { spec }: EndingMarket,
    last: SentTransaction | null,
    report: OracleReport,
  ): Promise<void> {
    if (last !== null) {
      const isOnItsWay = last.status === 'SIGNED' || last.status === 'BROADCAST' || isUnseen(last)
      if (isOnItsWay || clock.now() - last.signedAt < RESUBMIT_MS) return
      if (last.status === 'REVERTED') await noteRevert(spec, last)
    }
    await store.keep(fence, spec, report)
    const call = calls.submitFinalReport(spec.trader, report)
    await send(fence, [{ purpose: reportPurpose(spec.marketId), call }])
  }

  const isUnseen = ({ status, isIngested }: { status: string; isIngested: boolean }): boolean =>
    status === 'MINED' && !isIngested

  async function finalize(
    fence: Fence,
    { spec, isFinalizing }: EndingMarket,
    inForce: Pick<OracleReport, 'price' | 'observedAt'>,
    blockTime: Millis,
  ): Promise<void> {
    const { marketId } = spec
    if (isFinalizing || elapsed(clock, queuedAt.get(marketId) ?? 0) < REQUEUE_MS) return
    queuedAt.set(marketId, clock.now())
    const report = await store.proofOf(spec, inForce)
    const verdict = await finalizations.finalize(marketId, fence, blockTime, report)
    const details = { market_id: marketId, price: report.price.toString() }
    if (!verdict.ok)
      logger.warn({ ...details, refusal: verdict.refusal }, 'finalization not queued; will retry')
    else if (verdict.value !== null) {
      ports.wakeSettlement(marketId)
      logger.info({ ...details, queue_no: verdict.value }, 'finalization queued')
    }
  }

  return {
    async visit(fence, market, blockTime) {
      const last = await store.lastSent(lane, reportPurpose(market.spec.marketId))
      const report = await reportFor(market, last, blockTime)
      const step = planEnding(market.spec, market.ending, report, blockTime)
      note(market, step)
      if (step.kind === 'submit_report') await submit(fence, market, last, step.report)
      if (step.kind === 'finalize') await finalize(fence, market, step.report, blockTime)
    },
    retain(marketIds) {
      for (const marketId of [...steps.keys()].filter((known) => !marketIds.has(known))) {
        steps.delete(marketId)
        metrics.finalReportMissing(marketId, false)
      }
    },
  }
}
