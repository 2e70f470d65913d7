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
 * Rows that cover the minute start `from` to now, short rows first. Rows of each length end at the next start of a
 * longer row. The longest rows reach the end, because rows contain no future.
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
