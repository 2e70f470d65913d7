/** Spans of requests with commands. */
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { ArrivalTimes } from '../../../api/arrival-times.ts'
import { createEngineCalls } from '../../../api/engine-reply.ts'
import { ApiError } from '../../../api/errors.ts'
import { runInSpan } from '../../../api/request-spans.ts'
import { readSpan } from '../../../service/spans.ts'
import { RecordedSpans } from '../../support/recorded-spans.ts'

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const CALLER = '00f067aa0ba902b7'
const COMMAND = { kind: 'barrier', fences: [] } as never

describe('the span of a request', () => {
  const recorded = new RecordedSpans()
  let arrivals: ArrivalTimes
  /** Trace ids that the engine has received. */
  const received: (string | undefined)[] = []
  let reply: object = { answer: null }
  beforeEach(() => {
    recorded.spans.splice(0)
    recorded.areSampled = true
    received.splice(0)
    reply = { answer: null }
    arrivals = new ArrivalTimes(() => 10)
  })
  afterEach(() => arrivals.stop())

  const calls = () => {
    const engine = {
      async submit(_command: unknown, _budgetMs: number, _arrivedAt: unknown, traceId?: string) {
        received.push(traceId)
        return reply
      },
    }
    return createEngineCalls(engine as never, { error() {} }, { commandTimeoutMs: 1_000 }, arrivals, recorded)
  }
  const run = <Result>(traceparent: unknown, work: () => Result): Result =>
    runInSpan(
      recorded,
      arrivals,
      { name: 'POST /v0/orders', arrivedAt: 3, traceId: 'request-1', traceparent },
      work,
    )
  const command = () => calls().ask(COMMAND)

  it('when the client sends a traceparent, its span is the parent, and the command carries a span of the trace', async () => {
    await run(`00-${TRACE}-${CALLER}-01`, command)
    const [call] = recorded.named('engine barrier')
    const [request] = recorded.named('POST /v0/orders')
    expect(request?.parent).to.deep.include({ traceId: TRACE, spanId: CALLER })
    expect(request).to.include({ kind: 'server', startedAt: 3 })
    expect(request?.attributes).to.deep.equal({ 'clearbatch.request_id': 'request-1' })
    expect(call?.parent).to.deep.include(request?.ref)
    expect(readSpan(received[0] as string)).to.deep.equal({ logId: 'request-1', span: call?.ref })
  })

  it('when the client excludes its request, or it is not sampled, the command carries the trace id alone', async () => {
    await run(`00-${TRACE}-${CALLER}-00`, command)
    recorded.areSampled = false
    await run(`00-${TRACE}-${CALLER}-01`, command)
    expect(received).to.deep.equal(['request-1', 'request-1'])
    expect(recorded.spans).to.deep.equal([])
  })

  it('when a request is rejected, its span has the code, and only an error of the exchange is a fault', async () => {
    for (const error of [new ApiError('ORDER_NOT_FOUND'), new Error('secret')])
      await run(undefined, () => Promise.reject(error)).catch(() => {})
    expect(recorded.spans.map(({ error }) => error)).to.deep.equal([
      { code: 'ORDER_NOT_FOUND', isFault: false },
      { code: 'INTERNAL', isFault: true },
    ])
  })

  it('when the engine has not executed a command, its span has the reason', async () => {
    reply = { none: 'overloaded' }
    await run(undefined, command).catch(() => {})
    expect(recorded.named('engine barrier')[0]?.error).to.deep.equal({ code: 'overloaded', isFault: false })
  })
})
