/** The stored rows that cover a time span ending now. */
import type { Span } from './interval.ts'
import { SPANS } from './interval.ts'

/** Rows of one length with a start in [`from`, `to`). */
export interface SpanRange {
  readonly span: Span
  readonly from: number
  readonly to: number
}

/** Later than every row. */
const END = Number.MAX_SAFE_INTEGER

/**
 * Rows that cover the span from the minute start `from` to now.
 * Short rows come first; each length reaches up to the next start of a longer row. A row in progress contains
 * nothing later than now, so rows of the longest length cover the end.
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
