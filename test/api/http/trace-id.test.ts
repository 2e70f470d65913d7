import { expect } from 'chai'
import { describe, it } from 'mocha'
import { traceIdOf } from '../../../api/http/trace-id.ts'

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const OWN = 'abc-1'

describe('the trace id of a request', () => {
  const accepted: Readonly<Record<string, readonly [Record<string, string>, string]>> = {
    'no header': [{}, OWN],
    traceparent: [{ traceparent: `00-${TRACE}-00f067aa0ba902b7-01` }, TRACE],
    'traceparent of a later version': [{ traceparent: `01-${TRACE}-00f067aa0ba902b7-01-more` }, TRACE],
    'x-request-id': [{ 'x-request-id': 'desk:7_A-1' }, 'desk:7_A-1'],
    'both headers': [{ traceparent: `00-${TRACE}-00f067aa0ba902b7-00`, 'x-request-id': 'other' }, TRACE],
    'an invalid traceparent beside x-request-id': [{ traceparent: 'x', 'x-request-id': 'other' }, 'other'],
  }
  for (const [name, [headers, expected]] of Object.entries(accepted))
    it(`when a request has ${name}, its trace id is ${expected}`, () => {
      expect(traceIdOf(headers, OWN)).to.equal(expected)
    })

  const ignored: Readonly<Record<string, Record<string, string>>> = {
    'a trace id of zeros': { traceparent: `00-${'0'.repeat(32)}-00f067aa0ba902b7-01` },
    'the forbidden version': { traceparent: `ff-${TRACE}-00f067aa0ba902b7-01` },
    'upper case': { traceparent: `00-${TRACE.toUpperCase()}-00f067aa0ba902b7-01` },
    'a version without end': { traceparent: `00-${TRACE}-00f067aa0ba902b7` },
    'a line break': { 'x-request-id': 'a\nb' },
    quotes: { 'x-request-id': 'a"b' },
    'no character': { 'x-request-id': '' },
    'too many characters': { 'x-request-id': 'a'.repeat(65) },
    'an API key': { 'x-request-id': `cb_${'a'.repeat(43)}` },
  }
  for (const [name, headers] of Object.entries(ignored))
    it(`when a header has ${name}, it is ignored, and the id of the request counts`, () => {
      expect(traceIdOf(headers, OWN)).to.equal(OWN)
    })
})
