/** The id by which the log lines of all processes name a request: that of the client's own tracing, otherwise the id of the request. */
import type { IncomingHttpHeaders } from 'node:http'
import { echoText } from './echo.ts'

/** W3C Trace Context: a trace id of zeros is invalid. */
const TRACEPARENT = /^(?!ff)[\da-f]{2}-(?!0{32})([\da-f]{32})-[\da-f]{16}-[\da-f]{2}(?:-|$)/
/** Characters that need no escape in a log line or in a pattern of a search. */
const REQUEST_ID = /^[\w:-]{1,64}$/

/** A header that is no id is ignored: it must not make a request fail, and its text never reaches a log. */
export function traceIdOf(headers: IncomingHttpHeaders, requestId: string): string {
  const { traceparent, 'x-request-id': own } = headers
  if (traceparent === undefined && own === undefined) return requestId
  const [, trace] = typeof traceparent === 'string' ? (TRACEPARENT.exec(traceparent) ?? []) : []
  if (trace !== undefined) return trace
  return typeof own === 'string' && REQUEST_ID.test(own) && echoText(own) === own ? own : requestId
}
