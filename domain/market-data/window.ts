/** The stored rows of which a stretch of time up to now consists. */
import type { Span } from './interval.ts'
import { SPANS } from './interval.ts'

/** The rows of one length with a start in [`from`, `to`). */
export interface SpanRange {
  readonly span: Span
  readonly from: number
  readonly to: number
}

/** Later than every row. */
const END = Number.MAX_SAFE_INTEGER

/**
 * The rows of the stretch from a start of a minute to now: the shortest first, each length up to the next start of a longer one. Rows that
 * began and have not ended contain nothing later than now, so the longest serves to the end.
 */
export function windowUntilNow(from: number): SpanRange[] {
  let next = from
  return SPANS.map((span, at) => {
    const longer = SPANS[at + 1]
    const start = next
    next = longer === undefined ? END : Math.ceil(start / longer) * longer
    return { span, from: start, to: next }
  })
}
