/** Pages of the equity of an account: reads what happened and what was held, and values it. */
import type { Db, Tx } from '../../db/client.ts'
import { INTERVALS } from '../../domain/market-data/interval.ts'
import {
  addValues,
  type EquityPoint,
  equityPoints,
  NO_FLOWS,
  NO_VALUE,
  type PositionValue,
  valueHeld,
} from '../../domain/positions/equity-history.ts'
import { type Millis, maxOf, minOf } from '../../domain/units.ts'
import { pageStart } from '../candles/query.ts'
import type { IntervalRange } from '../candles/range.ts'
import { type Specs, specOf } from '../markets/market-directory.ts'
import {
  type EquityAccount,
  type EquityInterval,
  firstFlow,
  flowsBefore,
  flowsOf,
  heldMarkets,
  positionsAt,
  type ValuedPosition,
} from './query.ts'

/** Most positions that a page values: one per interval and market. */
const MAX_VALUATIONS = 20_000

/** How far back hours are listed: half-hourly prices are kept for a day longer. */
const HOURS_REACH_MS = 730 * INTERVALS['1d']

export interface EquityRange extends IntervalRange {
  readonly interval: EquityInterval
  readonly now: Millis
}

export interface EquityPage {
  readonly span: number
  /** Starts of the page's intervals, ascending. */
  readonly starts: readonly number[]
  readonly before: Awaited<ReturnType<typeof flowsBefore>>
  readonly flows: Awaited<ReturnType<typeof flowsOf>>
  readonly positions: readonly ValuedPosition[]
  readonly hasMore: boolean
}

/**
 * The newest page of the range. It is read from one snapshot, so that all parts of a point include the same events. An
 * account with many positions gets fewer intervals per page.
 */
export function equityPage(db: Db | Tx, account: EquityAccount, range: EquityRange): Promise<EquityPage> {
  if (db.isTransaction) return readPage(db, account, range)
  return db
    .transaction()
    .setIsolationLevel('repeatable read')
    .setAccessMode('read only')
    .execute((tx) => readPage(tx, account, range))
}

async function readPage(db: Db | Tx, account: EquityAccount, range: EquityRange): Promise<EquityPage> {
  const { interval, now } = range
  const span = INTERVALS[interval]
  const held = await heldMarkets(db, account)
  const flowed = account.marketId === undefined ? await firstFlow(db, account.userId) : null
  const times = [...held.map(({ first_at }) => first_at), ...(flowed === null ? [] : [flowed])]
  const oldest = interval === '1h' ? now - (now % span) - HOURS_REACH_MS : 0
  const first = times.length === 0 ? null : Math.max(Math.min(...times), oldest)
  const limit = Math.max(1, minOf(range.limit, Math.floor(MAX_VALUATIONS / Math.max(1, held.length))))
  const { from, earliest } = pageStart({ ...range, limit }, first)
  const to = maxOf(range.to, from)
  const starts = Array.from({ length: (to - from) / span }, (_, at) => from + at * span)
  const ends = [from, ...starts.map((start) => start + span)]
  return {
    span,
    starts,
    before: await flowsBefore(db, account, from),
    flows: await flowsOf(db, account, { span, from, to }),
    positions: await positionsAt(db, account.userId, held, { interval, ends, now }),
    hasMore: from > earliest,
  }
}

export interface StartedPoint extends EquityPoint {
  readonly start: number
}

/** Oldest first. */
export function equitySeries(
  { starts, span, before, flows, positions }: EquityPage,
  specs: Specs,
): StartedPoint[] {
  const [from] = starts
  if (from === undefined) return []
  const values = new Map<number, PositionValue>()
  for (const position of positions) {
    const value = valueHeld(specOf(specs, position), position)
    values.set(position.at, addValues(values.get(position.at) ?? NO_VALUE, value))
  }
  const intervals = starts.map((start) => ({
    flows: flows.get(start) ?? NO_FLOWS,
    value: values.get(start + span) ?? NO_VALUE,
  }))
  const opening = { flows: before ?? NO_FLOWS, value: values.get(from) ?? NO_VALUE }
  return equityPoints(opening, intervals).map((point, at) => ({ ...point, start: from + at * span }))
}
