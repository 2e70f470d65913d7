/**
 * Spans of an order's path as a port, implemented by `span-export.ts`. The switch is `null`: `spans?.add({ … })`
 * evaluates and allocates nothing.
 */
import { createHash } from 'node:crypto'

/** Ids of a sampled span: 32 and 16 hexadecimal digits. */
export interface SpanRef {
  readonly traceId: string
  readonly spanId: string
}

/** Public facts only: no credential, signature or body. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean | readonly string[]>>

export interface SpanStart {
  readonly name: string
  /** `server` and `client`: the two sides of a request. */
  readonly kind?: 'server' | 'client'
  /** Unix milliseconds with a fraction (`Spans.now`). */
  readonly startedAt: number
  /** Null: the span begins a trace. */
  readonly parent: SpanRef | null
  /** Ids of a span without parent that several processes derive (`batchSpan`). */
  readonly own?: SpanRef
  readonly links?: readonly SpanRef[]
  readonly attributes?: SpanAttributes
}

export interface SpanError {
  /** A code without text of the request. */
  readonly code: string
  /** False for a request that was rejected as the rules demand. */
  readonly isFault: boolean
}

export interface FinishedSpan extends SpanStart {
  readonly endedAt: number
  readonly error?: SpanError
}

export interface OpenSpan extends SpanRef {
  end(error?: SpanError): void
}

/** Where spans are sent, and the share of requests that have spans. */
export interface TraceExport {
  /** Endpoint of the collector for OTLP over HTTP with JSON, for example `http://collector:4318/v1/traces`. */
  readonly url: string
  readonly sampleMillionths: number
}

export interface Spans {
  /** Unix milliseconds with a fraction. */
  now(): number
  /** Wall time of a monotonic time. */
  timeOf(monotonic: number): number
  /** Whether this request has spans. By chance, not by its trace id, which a client can choose. */
  isSampled(): boolean
  start(span: SpanStart): OpenSpan
  add(span: FinishedSpan): SpanRef
  /** Sends the waiting spans, for one second at most. */
  stop(): Promise<void>
}

/** Outcomes of finished spans: sent, not accepted by the collector, or dropped because too many waited. */
export const SPAN_OUTCOMES = ['exported', 'failed', 'dropped'] as const
export type SpanOutcome = (typeof SPAN_OUTCOMES)[number]

const counts: Record<SpanOutcome, number> = { exported: 0, failed: 0, dropped: 0 }

export const countSpans = (outcome: SpanOutcome, count: number): void => {
  counts[outcome] += count
}

/** Finished spans of this process since its start. */
export const spanCounts = (): Readonly<Record<SpanOutcome, number>> => counts

/** Span of a batch, under which all processes put its spans. Each derives its ids; no message carries them. */
export function batchSpan(marketId: number | string, batchId: number, asOf: number): SpanRef {
  const digest = createHash('sha256').update(`batch ${marketId}/${batchId} ${asOf}`).digest('hex')
  return { traceId: digest.slice(0, 32), spanId: digest.slice(32, 48) }
}

/** Version, trace id, parent's id, flags. */
const TRACEPARENT = /^(?!ff)[\da-f]{2}-(?!0{32})([\da-f]{32})-(?!0{16})([\da-f]{16})-([\da-f]{2})(?:-|$)/

/** The caller's span of W3C Trace Context; null if the header is absent or invalid. */
export function callerSpan(traceparent: unknown): (SpanRef & { readonly isSampled: boolean }) | null {
  const found = typeof traceparent === 'string' ? TRACEPARENT.exec(traceparent) : null
  if (found === null) return null
  const [, traceId = '', spanId = '', flags = ''] = found
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 }
}

/** Trace id of the log lines together with the span of the command, as one text: `<trace id>/<trace>-<span>`. */
export const withSpan = (logId: string, { traceId, spanId }: SpanRef): string =>
  `${logId}/${traceId}-${spanId}`

const CARRIED = /^([\da-f]{32})-([\da-f]{16})$/

/** The parts of `withSpan`. `span` is null for a command that is not sampled. */
export function readSpan(text: string): { readonly logId: string; readonly span: SpanRef | null } {
  const at = text.indexOf('/')
  if (at < 0) return { logId: text, span: null }
  const found = CARRIED.exec(text.slice(at + 1))
  const [, traceId = '', spanId = ''] = found ?? []
  return { logId: text.slice(0, at), span: found && { traceId, spanId } }
}
