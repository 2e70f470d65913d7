/** Spans that are kept instead of being sent. Its clock stands until a test sets it. */
import type { FinishedSpan, OpenSpan, SpanRef, SpanStart, Spans } from '../../service/spans.ts'

export interface RecordedSpan extends FinishedSpan {
  readonly ref: SpanRef
}

export class RecordedSpans implements Spans {
  readonly spans: RecordedSpan[] = []
  time = 1_000
  /** Whether requests have spans. */
  areSampled = true
  #next = 0

  now = (): number => this.time
  timeOf = (monotonic: number): number => monotonic
  isSampled = (): boolean => this.areSampled

  start(span: SpanStart): OpenSpan {
    const ref = this.#refOf(span)
    return {
      ...ref,
      end: (error) => {
        const finished = { ...span, ref, endedAt: this.time }
        this.spans.push(error === undefined ? finished : { ...finished, error })
      },
    }
  }

  add(span: FinishedSpan): SpanRef {
    const ref = this.#refOf(span)
    this.spans.push({ ...span, ref })
    return ref
  }

  async stop(): Promise<void> {}

  /** Names, the first first. */
  get names(): readonly string[] {
    return this.spans.map(({ name }) => name)
  }

  named(name: string): readonly RecordedSpan[] {
    return this.spans.filter((span) => span.name === name)
  }

  #refOf({ parent, own }: SpanStart): SpanRef {
    if (own !== undefined) return own
    const number = ++this.#next
    const traceId = parent?.traceId ?? number.toString(16).padStart(32, '0')
    return { traceId, spanId: number.toString(16).padStart(16, '0') }
  }
}
