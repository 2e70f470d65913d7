/** Days of UTC in requests and answers: `2026-11-22`. Each has 24 hours. */
import Type from 'typebox'
import { ApiError } from '../errors.ts'
import { isoTime } from './amounts.ts'
import { expects } from './schema.ts'

export const DAY = 86_400_000

const EXPECTED = 'a day such as 2026-11-22'

export const Day = (description: string) =>
  Type.String({
    pattern: '^\\d{4}-\\d{2}-\\d{2}$',
    ...expects(EXPECTED),
    description,
    examples: ['2026-11-22'],
  })

/** The start of the day. Throws INVALID_FIELD for a day that the calendar does not have. */
export function startOfDay(field: string, text: string): number {
  const at = Date.parse(`${text}T00:00:00.000Z`)
  if (!Number.isNaN(at) && dayText(at) === text) return at
  throw new ApiError('INVALID_FIELD', { field, expected: EXPECTED, received: text })
}

export const dayText = (at: number): string => isoTime(at).slice(0, 10)
