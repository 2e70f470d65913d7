/**
 * Laws of a market's action queue.
 * The contract reverts an action that breaks a law, and all later actions with it. An action is therefore
 * checked before it is queued.
 */
import { advanceFunding, type FundingState } from '../prices/funding-state.ts'
import type { UsedReport } from '../prices/report.ts'
import type { Millis } from '../units.ts'
import { accept, refuse, type Verdict } from '../verdict.ts'
import { type QueuedAction, reportOf } from './action.ts'

/** End of a queue: the state that the next action must follow. */
export interface QueueTail {
  /** `asOf` of the last action, queued or mined. */
  readonly lastAsOf: Millis
  /** Last report of the market's own feed that an action uses. */
  readonly usedReport: UsedReport | null
  /** Batch with parts that are not queued yet; null if there is none. */
  readonly openBatch: { readonly batchId: number; readonly nextPart: number; readonly parts: number } | null
  /** True if the last action ends the market. */
  readonly isEnded: boolean
}

export const EMPTY_QUEUE: QueueTail = {
  lastAsOf: 0 as Millis,
  usedReport: null,
  openBatch: null,
  isEnded: false,
}

export type QueueRefusal =
  | { readonly code: 'MARKET_ENDED' }
  | { readonly code: 'AS_OF_DECREASED'; readonly last: Millis; readonly received: Millis }
  /** A batch is open: another action between its parts would close the batch on chain. */
  | { readonly code: 'BATCH_OPEN'; readonly batchId: number; readonly nextPart: number }
  | { readonly code: 'REPORT_OLDER'; readonly last: UsedReport; readonly received: UsedReport }
  /** The report has the time of the last report and another price. */
  | { readonly code: 'REPORT_CONFLICT'; readonly last: UsedReport; readonly received: UsedReport }

/** The queue end after the action, or the reason why the action must not be queued. */
export function enqueue(tail: QueueTail, action: QueuedAction): Verdict<QueueTail, QueueRefusal> {
  if (tail.isEnded) return refuse({ code: 'MARKET_ENDED' })
  if (action.asOf < tail.lastAsOf) {
    return refuse({ code: 'AS_OF_DECREASED', last: tail.lastAsOf, received: action.asOf })
  }
  if (tail.openBatch !== null && !isNextPart(tail, tail.openBatch, action)) {
    const { batchId, nextPart } = tail.openBatch
    return refuse({ code: 'BATCH_OPEN', batchId, nextPart })
  }
  const report = reportOf(action)
  const refusal = report === null ? null : reportRefusal(tail.usedReport, report)
  if (refusal !== null) return refuse(refusal)
  return accept({
    lastAsOf: action.asOf,
    usedReport: report === null ? tail.usedReport : usedReportOf(report),
    openBatch: openBatchAfter(action),
    isEnded: action.kind === 'finalize_market',
  })
}

const usedReportOf = ({ price, observedAt }: UsedReport): UsedReport => ({ price, observedAt })

/** All parts of a batch must have the same terms. */
const isNextPart = (
  { lastAsOf, usedReport }: QueueTail,
  { batchId, nextPart, parts }: NonNullable<QueueTail['openBatch']>,
  action: QueuedAction,
): boolean =>
  action.kind === 'settle_part' &&
  action.batchId === batchId &&
  action.part === nextPart &&
  action.parts === parts &&
  action.asOf === lastAsOf &&
  action.report.price === usedReport?.price &&
  action.report.observedAt === usedReport.observedAt

const openBatchAfter = (action: QueuedAction): QueueTail['openBatch'] =>
  action.kind === 'settle_part' && action.part < action.parts
    ? { batchId: action.batchId, nextPart: action.part + 1, parts: action.parts }
    : null

function reportRefusal(last: UsedReport | null, received: UsedReport): QueueRefusal | null {
  if (last === null || received.observedAt > last.observedAt) return null
  const codes = { last, received: usedReportOf(received) }
  if (received.observedAt < last.observedAt) return { code: 'REPORT_OLDER', ...codes }
  return received.price === last.price ? null : { code: 'REPORT_CONFLICT', ...codes }
}

/** Funding effect of a queued action. */
export interface FundingStep {
  readonly asOf: Millis
  /** Rate that the action sets; null if it sets none. */
  readonly sets: Parameters<typeof advanceFunding>[2]
}

/**
 * Funding after the queued actions. Each action accrues separately, because the contract truncates every accrual.
 */
export const fundingAfter = (mined: FundingState, queue: readonly FundingStep[]): FundingState =>
  queue.reduce((state, { asOf, sets }) => advanceFunding(state, asOf, sets), mined)

export const fundingStepOf = (action: QueuedAction): FundingStep => ({
  asOf: action.asOf,
  sets: action.kind === 'update_funding' ? action : null,
})
