/** Lists by hour or day in UTC, such as profits and equity. */
import Type from 'typebox'
import { timeInput, words } from './schema.ts'

export const INTERVALS = ['1h', '1d'] as const

/** Field of an answer. */
export const Interval = words(INTERVALS, 'Length of the intervals.')

/** Parameters of a query: the intervals that start in a range. */
export const intervalRange = {
  from: Type.Optional(timeInput('Only intervals that start at this time or later.')),
  to: Type.Optional(timeInput('Only intervals that start before this time. Default: now.')),
}
