/** Times in queries. */
import type { Millis } from '../../domain/units.ts'
import { ApiError } from '../errors.ts'

export const TIME_EXPECTED = 'a time as in answers, such as 2026-11-22T13:00:00.000Z'

/** In milliseconds; null is unbounded. */
export interface TimeRange {
  readonly from: number | null
  /** Exclusive. */
  readonly to: number | null
}

/** The range of times that a query names by `rangeQuery` of its schema. */
export const timeRange = ({ from, to }: RangeQuery): TimeRange => ({
  from: parseTime('from', from),
  to: parseTime('to', to),
})

interface RangeQuery {
  readonly from?: string | undefined
  readonly to?: string | undefined
}

/** The time of a query field; null without one. The schema has checked its form (`timeInput`), but not that such a day exists. */
export function parseTime(field: string, text: string | undefined): Millis | null {
  if (text === undefined) return null
  const millis = Date.parse(text)
  if (Number.isNaN(millis))
    throw new ApiError('INVALID_FIELD', { field, expected: TIME_EXPECTED, received: text })
  return millis as Millis
}
