/** The range of intervals that a request names, for lists with one item per interval. */
import {
  INTERVALS,
  type Interval,
  intervalStart,
  nextIntervalStart,
} from '../../domain/market-data/interval.ts'
import { type Millis, minOf } from '../../domain/units.ts'
import { decodeCursor, encodeCursor, invalidCursor, type List } from '../wire/cursor.ts'
import { parseTime } from '../wire/times.ts'

/** Intervals in a range of time, up to `limit` of them from its end. */
export interface IntervalRange {
  readonly interval: Interval
  /** Null: from the first value on. Starts of intervals, the end exclusive. */
  readonly from: Millis | null
  readonly to: Millis
  readonly limit: number
}

interface RangeQuery {
  readonly from?: string
  readonly to?: string
  readonly limit?: number
  readonly cursor?: string
}

/** `list` and `id` identify the list of the pages: a cursor of another list is rejected. */
export interface PagedIntervals {
  readonly list: List
  readonly id: string
  readonly interval: Interval
}

/** `isBounded`: the request itself names the end, so that the same request has the same range at any time after it. */
export function rangeOf(
  { list, id, interval }: PagedIntervals,
  { from, to, limit = 100, cursor }: RangeQuery,
  now: Millis,
): IntervalRange & { readonly isBounded: boolean } {
  const place = decodeCursor(list, cursor)
  if (place !== null && place.id !== id) throw invalidCursor(cursor as string)
  const before = place?.at ?? parseTime('to', to)
  const first = parseTime('from', from)
  const running = (intervalStart(interval, now) + INTERVALS[interval]) as Millis
  return {
    ...{ interval, limit },
    from: first === null ? null : nextIntervalStart(interval, first),
    to: before === null ? running : minOf(nextIntervalStart(interval, before), running),
    isBounded: before !== null,
  }
}

/** The cursor of the page before that of the item, which is the oldest of its page. */
export const cursorAfter = ({ list, id }: PagedIntervals, oldest: { readonly start: number } | undefined) =>
  oldest === undefined ? null : encodeCursor(list, { at: oldest.start, id })
