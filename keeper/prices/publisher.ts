/**
 * The price publisher: aggregates the readings of each feed's sources, has the result signed, and stores it as the feed's report, or stores
 * why there is none. All feeds of the exchange are one job.
 */
import type { Fence } from '../../db/fence.ts'
import type { FeedAbsence, FeedReport } from '../../db/oracle-reports.ts'
import type { SessionState } from '../../domain/market/trading-calendar.ts'
import {
  type Aggregate,
  aggregate,
  type JudgedReading,
  type Reading,
  type SourceAnswer,
} from '../../domain/prices/aggregate.ts'
import { type AbsenceReason, isFloored, rangeOf, statusOf } from '../../domain/prices/feed.ts'
import { isReportDue, nextObservedAt } from '../../domain/prices/publication.ts'
import { finalWindow } from '../../domain/prices/reading-window.ts'
import { type MarketId, type Millis, maxOf, type Price } from '../../domain/units.ts'
import { type Clock, elapsed } from '../../service/clock.ts'
import type { KillPointHook } from '../../service/kill-point.ts'
import type { Logger } from '../../service/logger.ts'
import type { PriceSource } from '../ports.ts'
import {
  type FeedMarket,
  type FeedSetup,
  keyOf,
  type PriceMetrics,
  type PriceStore,
  type Quorum,
} from './ports.ts'
import { createSessions } from './sessions.ts'

export interface PublisherPorts {
  readonly store: PriceStore
  /** The configured feeds; another list once the configuration has changed. */
  readonly feeds: () => readonly FeedSetup[]
  readonly quorum: Quorum
  readonly clock: Clock
  readonly killPoint: KillPointHook<'after-report-signing' | 'after-report-storing'>
  readonly metrics: PriceMetrics
  readonly logger: Logger
}

export interface Publisher {
  start(): Promise<void>
  /** Publishes what is due. */
  step(fence: Fence): Promise<PublisherStep>
}

export interface PublisherStep {
  /** Before the next step. */
  readonly pauseMs: number
  /** The stored reports may have changed: some were stored, or another program may have stored its own. */
  readonly mayHaveChanged: boolean
}

/** Bound of the delay between a reading and its report. */
const TICK_MS = 100
/** A feed that has no new report is written again, with the newest readings, at this interval. */
const ABSENCE_MS = 1_000
/** Signers that did not sign are asked again after this time. */
const RETRY_MS = 200
const MARKETS_MS = 5_000
/** Bound of the time in which another program that begins to publish is noticed, while no feed is due. */
const LOOK_MS = 300
/** A second of polling and a second of rounding: no later round has an earlier time. */
const ROUND_DELAY_MS = 2_000
/**
 * Bounds of the reports of one tick. A tick without any quorum halves the next one: after a failure all feeds are due
 * at once, which slow signers could never answer within the deadline.
 */
const MOST_REPORTS = 128
const LEAST_REPORTS = 8

/** The publisher's memory of a feed under its lease. */
interface FeedMemory {
  last: Reading | null
  /** Null while the feed is live. */
  reason: AbsenceReason | null
  /** Last time at which signers were asked in vain, or an absence was written. */
  triedAt: number
  writtenAt: number
  /** The last reading of each source that passed its guards. */
  readonly previous: Map<string, Reading>
}

interface Judged {
  readonly setup: FeedSetup
  readonly readings: readonly JudgedReading[]
}
interface Due extends Judged {
  readonly reading: Reading
}
interface Absent extends Judged {
  readonly reason: AbsenceReason
}

export function createPublisher(ports: PublisherPorts): Publisher {
  const { store, feeds, quorum, clock, killPoint, metrics, logger } = ports
  const memories = new Map<string, FeedMemory>()
  const sessions = createSessions()
  let setups: readonly FeedSetup[] = []
  let capacity = MOST_REPORTS
  let markets: ReadonlyMap<MarketId, FeedMarket> = new Map()
  let marketsAt = Number.NEGATIVE_INFINITY
  /** Markets whose index another program publishes. */
  let overridden: ReadonlyMap<MarketId, Reading | null> = new Map()
  /** When the store was last asked. */
  let lookedAt = Number.NEGATIVE_INFINITY

  const memoryOf = (setup: FeedSetup): FeedMemory => {
    const key = keyOf(setup)
    const memory = memories.get(key) ?? {
      ...{ last: null, reason: null, previous: new Map() },
      ...{ triedAt: Number.NEGATIVE_INFINITY, writtenAt: Number.NEGATIVE_INFINITY },
    }
    memories.set(key, memory)
    return memory
  }

  /** The value of the feed now, or the reason why there is none. Null for the final price of a market that has not closed. */
  function judge(setup: FeedSetup, market: FeedMarket, memory: FeedMemory, now: Millis): Aggregate | null {
    const { spec, calendar, closing } = market
    const { last } = memory
    if (setup.feed === 'session') return ofCalendar(calendar && sessions.at(calendar, now), now)
    const isFinal = setup.feed === 'final'
    const window = isFinal ? finalWindow(closing, now) : sessions.windowAt(calendar, now, last !== null)
    if (window === null) return isFinal ? null : repeated(last)
    const sources = new Map(setup.sources.map((source) => [source.name, source]))
    const answers = setup.sources.map((source) => answerOf(source, last, window.asOf))
    const result = aggregate(
      answers,
      {
        ...{ minimum: setup.minimum, maxSpread: setup.maxSpread, maxAhead: setup.maxAhead },
        ...{ since: window.since, range: rangeOf(spec, setup.feed), isFloored: isFloored(spec, setup.feed) },
        boundsOf: (name) => sources.get(name) as (typeof setup.sources)[number],
        previousOf: (name) => memory.previous.get(name) ?? null,
      },
      window.asOf,
    )
    for (const { source, reading, dropped } of result.readings) {
      if (reading !== null && (dropped === null || dropped === 'OUTLIER'))
        memory.previous.set(source, reading)
      else if (dropped !== null) metrics.dropped(source, dropped)
    }
    return setup.isRound ? ofRound(result) : result
  }

  /** A source that fails is one without a reading: it holds up no other. */
  function answerOf(source: PriceSource, last: Reading | null, now: Millis): SourceAnswer {
    try {
      return { source: source.name, ...source.answer(now, last) }
    } catch (err) {
      logger.error({ source: source.name, err }, 'price source failed')
      return { source: source.name, reading: null, fault: 'FAILED' }
    }
  }

  function judgeAll(now: Millis) {
    const due: Due[] = []
    const absent: Absent[] = []
    for (const setup of setups) {
      const market = markets.get(setup.marketId as MarketId)
      if (market === undefined || market.isEnded || overridden.has(setup.marketId as MarketId)) continue
      const memory = memoryOf(setup)
      const judged = judge(setup, market, memory, now)
      if (judged === null) continue
      const { value, reason, readings } = judged
      if (value === null) absent.push({ setup, reason, readings })
      else if (isDue(setup, memory, value, now)) {
        due.push({ setup, readings, reading: readingOf(setup, { value, readings }, memory.last, now) })
      }
    }
    return { due, absent }
  }

  const isDue = (
    setup: FeedSetup,
    { last, reason, triedAt }: FeedMemory,
    value: bigint,
    now: Millis,
  ): boolean =>
    Math.abs(now - triedAt) >= RETRY_MS &&
    isReportDue(reason === null ? last : null, value, statedTime(setup, now), setup.publication)

  const reportedAt = (setup: FeedSetup): number => memoryOf(setup).last?.observedAt ?? 0

  /** Feeds with the oldest reports; all other feeds are due again at the next tick. */
  const nextOf = (due: readonly Due[]): readonly Due[] =>
    due.length <= capacity
      ? due
      : due.toSorted((a, b) => reportedAt(a.setup) - reportedAt(b.setup)).slice(0, capacity)

  function adapt(asked: number, signed: number): void {
    if (asked === 0) return
    capacity = signed === 0 ? Math.max(LEAST_REPORTS, capacity >> 1) : Math.min(MOST_REPORTS, capacity * 2)
  }

  /** Has the values signed. Those without a quorum become absences. */
  async function prove(due: readonly Due[], now: Millis) {
    const signed = due.filter(({ setup }) => !setup.isRound)
    const outcomes = await quorum.collect(
      signed.map(({ setup: { feedId }, reading }) => ({ feedId, reading })),
    )
    const reports: (Due & { readonly proof: `0x${string}` })[] = due
      .filter(({ setup }) => setup.isRound)
      .map((one) => ({ ...one, proof: one.reading.round ?? '0x' }))
    const absent: Absent[] = []
    for (const [at, outcome] of outcomes.entries()) {
      const one = signed[at] as Due
      if (outcome.proof !== null) reports.push({ ...one, proof: outcome.proof })
      else {
        memoryOf(one.setup).triedAt = now
        absent.push({ setup: one.setup, reason: outcome.reason, readings: one.readings })
      }
    }
    return { reports, absent }
  }

  function noteStatus({ setup, readings }: Judged, reason: AbsenceReason | null): void {
    const memory = memoryOf(setup)
    if (memory.reason === reason) return
    memory.reason = reason
    const { marketId: market_id, feed } = setup
    if (reason === null) {
      logger.info({ market_id, feed }, 'feed is live again')
      return
    }
    const dropped = readings
      .filter((one) => one.dropped !== null)
      .map((one) => `${one.source}: ${one.dropped}`)
    const details = { market_id, feed, reason, status: statusOf(reason), dropped }
    logger.warn(details, 'feed has no new report')
  }

  const isWorthWriting = ({ setup, reason }: Absent, now: Millis): boolean => {
    const { reason: before, writtenAt } = memoryOf(setup)
    return before !== reason || Math.abs(now - writtenAt) >= ABSENCE_MS
  }

  const isLookDue = (): boolean => overridden.size > 0 || elapsed(clock, lookedAt) >= LOOK_MS

  /** False if there was nothing to store, and nothing to look for. */
  async function publish(fence: Fence, now: Millis): Promise<boolean> {
    const judged = judgeAll(now)
    const { reports, absent } = await prove(nextOf(judged.due), now)
    adapt(reports.length + absent.length, reports.length)
    if (reports.length > 0) killPoint('after-report-signing')
    const absences = [...judged.absent, ...absent].filter((one) => isWorthWriting(one, now))
    if (reports.length === 0 && absences.length === 0 && !isLookDue()) return false
    lookedAt = now
    overridden = await store.publish(fence, {
      reports: reports.map(toFeedReport),
      absences: absences.map(toFeedAbsence),
    })
    if (reports.length > 0) killPoint('after-report-storing')
    for (const one of reports) {
      memoryOf(one.setup).last = one.reading
      noteStatus(one, null)
    }
    for (const one of absences) {
      memoryOf(one.setup).writtenAt = now
      noteStatus(one, one.reason)
    }
    for (const [marketId, last] of overridden) {
      const index = memories.get(keyOf({ marketId, feed: 'index' }))
      if (index !== undefined) index.last = last
    }
    if (reports.length > 0) metrics.published(reports.length, elapsed(clock, now) / 1000)
    metrics.absent(countAbsences(memories.values()))
    return true
  }

  /** After the lease is acquired, and when the configuration has changed. */
  async function recall(): Promise<void> {
    setups = feeds()
    memories.clear()
    const states = await store.states()
    for (const setup of setups) Object.assign(memoryOf(setup), states.get(keyOf(setup)))
  }

  return {
    async start() {
      overridden = new Map()
      await recall()
    },
    async step(fence) {
      const now = clock.now()
      if (feeds() !== setups) await recall()
      if (elapsed(clock, marketsAt) >= MARKETS_MS) {
        markets = await store.markets()
        marketsAt = now
      }
      const mayHaveChanged = await publish(fence, clock.now())
      return { pauseMs: Math.max(0, TICK_MS - elapsed(clock, now)), mayHaveChanged }
    },
  }
}

// ---------------------------------------------------------------------- conversions

/** Outside the sessions of the underlying, the index repeats the last regular price. */
const repeated = (last: Reading | null): Aggregate =>
  last === null
    ? { readings: [], value: null, reason: 'TOO_FEW_SOURCES' }
    : { readings: [], value: last.price, reason: null }

/** The session feed has one source, the market's calendar. */
function ofCalendar(session: SessionState | null, now: Millis): Aggregate {
  const reading = session === null ? null : { price: BigInt(session.endsAt), observedAt: now }
  const dropped = reading === null ? 'NO_READING' : null
  const readings: JudgedReading[] = [{ source: 'calendar', reading, dropped, detail: null }]
  if (reading === null) return { readings, value: null, reason: 'TOO_FEW_SOURCES' }
  return { readings, value: reading.price, reason: null }
}

/** A report of an aggregator is its round, not a median: the other sources only confirm it. */
function ofRound(result: Aggregate): Aggregate {
  const [first] = result.readings
  if (result.value === null || first === undefined) return result
  if (first.dropped !== null || first.reading === null)
    return { readings: result.readings, value: null, reason: 'SOURCES_DISAGREE' }
  return { ...result, value: first.reading.price }
}

/**
 * Time stated in a report. A round after the last poll has its block's time in whole seconds, and a moment has only one
 * round: a report of the present moment could be rejected.
 */
const statedTime = ({ isRound }: FeedSetup, now: Millis): Millis =>
  isRound ? ((now - ROUND_DELAY_MS) as Millis) : now

/** A round is not observed before its time, which can be ahead of this clock. */
function readingOf(
  setup: FeedSetup,
  { value, readings }: { readonly value: bigint; readonly readings: readonly JudgedReading[] },
  last: Reading | null,
  now: Millis,
): Reading {
  const observedAt = nextObservedAt(statedTime(setup, now), last)
  const first = readings[0]?.reading
  if (!setup.isRound || first?.round === undefined) return { price: value, observedAt }
  return { price: value, observedAt: maxOf(observedAt, first.observedAt), round: first.round }
}

const toFeedReport = ({
  setup: { marketId, feed },
  reading: { price, observedAt },
  readings,
  proof,
}: Due & { readonly proof: `0x${string}` }): FeedReport => ({
  ...{ marketId, feed, readings },
  report: { price: price as Price, observedAt, signatures: proof },
})

const toFeedAbsence = ({ setup: { marketId, feed }, reason, readings }: Absent): FeedAbsence => ({
  ...{ marketId, feed, reason, readings },
})

function countAbsences(memories: Iterable<FeedMemory>): Map<AbsenceReason, number> {
  const counts = new Map<AbsenceReason, number>()
  for (const { reason } of memories) if (reason !== null) counts.set(reason, (counts.get(reason) ?? 0) + 1)
  return counts
}
