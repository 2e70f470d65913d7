/** Spans of requests with commands, and of the commands that they send to the engine. */
import {
  callerSpan,
  type OpenSpan,
  type SpanError,
  type SpanRef,
  type Spans,
  withSpan,
} from '../service/spans.ts'
import type { ArrivalTimes, PresentRequest } from './arrival-times.ts'
import { ApiError } from './errors.ts'
import { isCommand } from './live/schema.ts'

export interface NamedRequest extends PresentRequest {
  /** Method and route, or the operation of a message; without parameters. */
  readonly name: string
  /** The header, as it was sent. */
  readonly traceparent: unknown
}

const FIRST_FAULT = 500

function errorOf(error: unknown): SpanError {
  if (!(error instanceof ApiError)) return { code: 'INTERNAL', isFault: true }
  return { code: error.code, isFault: error.status >= FIRST_FAULT }
}

/** A client can exclude its request, but not add to the share of requests with spans. */
function startRequest(
  spans: Spans,
  { name, arrivedAt, traceId, traceparent }: NamedRequest,
): OpenSpan | null {
  const parent = callerSpan(traceparent)
  if (parent?.isSampled === false || !spans.isSampled()) return null
  const attributes = { 'clearbatch.request_id': traceId }
  return spans.start({ name, kind: 'server', startedAt: spans.timeOf(arrivedAt), parent, attributes })
}

/** Runs the work of a request within its span. */
export function runInSpan<Result>(
  spans: Spans,
  arrivals: Pick<ArrivalTimes, 'run'>,
  request: NamedRequest,
  work: () => Result,
): Result {
  const { arrivedAt, traceId } = request
  const span = startRequest(spans, request)
  if (span === null) return arrivals.run({ arrivedAt, traceId }, work)
  const result = arrivals.run({ arrivedAt, traceId, span }, work)
  if (!(result instanceof Promise)) span.end()
  else
    result.then(
      () => span.end(),
      (error: unknown) => span.end(errorOf(error)),
    )
  return result
}

export interface MessagePorts {
  readonly arrivals: Pick<ArrivalTimes, 'now' | 'run'>
  /** Null: no spans. */
  readonly spans: Spans | null
}

/** Runs the work of a message of the live feed that is read now, within a span if it has a command. */
export function runMessage<Result>(
  { arrivals, spans }: MessagePorts,
  traceId: string,
  op: string,
  work: () => Result,
): Result {
  const arrivedAt = arrivals.now()
  if (spans === null || !isCommand(op)) return arrivals.run({ arrivedAt, traceId }, work)
  const request = { name: `ws ${op}`, arrivedAt, traceId, traceparent: undefined }
  return runInSpan(spans, arrivals, request, work)
}

/** A command with the engine. */
export interface CallSpan {
  /** Trace id of the command, which carries the span to the engine. */
  readonly traceId: string
  end(error?: SpanError): void
}

/** Null outside of sampled requests. */
export function startCall(
  spans: Spans,
  { span: parent, traceId }: { readonly span: SpanRef | undefined; readonly traceId: string | undefined },
  kind: string,
): CallSpan | null {
  if (parent === undefined || traceId === undefined) return null
  const span = spans.start({ name: `engine ${kind}`, kind: 'client', startedAt: spans.now(), parent })
  return { traceId: withSpan(traceId, span), end: span.end }
}
