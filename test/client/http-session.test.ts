import { expect } from 'chai'
import { describe, it } from 'mocha'
import { ClearbatchError } from '../../client/errors.ts'
import { createHttpSession, type HttpRequest } from '../../client/http-session.ts'

interface Answer {
  readonly status: number
  readonly body: unknown
  readonly headers?: Record<string, string>
}

const rejection = (status: number, details: object, headers?: Record<string, string>): Answer => ({
  status,
  body: { message: 'no', details },
  ...(headers === undefined ? {} : { headers }),
})

/** A server that returns these responses in turn and then repeats the last; `no response` is a failed connection. */
function serverOf(responses: readonly (Answer | 'no response')[]) {
  const pauses: number[] = []
  let requests = 0
  const http = createHttpSession({
    baseUrl: 'http://exchange/',
    budgetMs: 5_000,
    now: () => pauses.reduce((sum, ms) => sum + ms, 0),
    sleep: async (ms) => {
      pauses.push(ms)
    },
    fetch: async () => {
      const response = responses[Math.min(requests++, responses.length - 1)] as Answer | 'no response'
      if (response === 'no response') throw new TypeError('fetch failed')
      const { status, body, headers } = response
      return new Response(JSON.stringify(body), { status, ...(headers === undefined ? {} : { headers }) })
    },
  })
  return { http, pauses, requests: () => requests }
}

const read: HttpRequest = { method: 'GET', path: '/v0/x', idempotent: true }
const act: HttpRequest = { method: 'POST', path: '/v0/x', body: {}, idempotent: false }
const ok: Answer = { status: 200, body: { fine: true } }

const errorOf = async (promise: Promise<unknown>): Promise<ClearbatchError> => {
  try {
    await promise
  } catch (error) {
    if (error instanceof ClearbatchError) return error
    throw error
  }
  throw new Error('expected a ClearbatchError')
}

describe('client/http-session', () => {
  it('when a response is PENDING with Retry-After, it retries after exactly that delay', async () => {
    const pending = rejection(
      503,
      { code: 'HTV1_READ_AFTER_PENDING', retryable: true },
      { 'retry-after': '0.25' },
    )
    const { http, pauses } = serverOf([pending, pending, ok])
    expect(await http.send(read)).to.deep.equal({ fine: true })
    expect(pauses).to.deep.equal([250, 250])
  })

  it('when responses are CAPACITY without Retry-After, it doubles the pause before each retry', async () => {
    const busy = rejection(429, { code: 'HTV1_READ_AFTER_CAPACITY', retryable: true })
    const { http, pauses } = serverOf([busy, busy, busy, ok])
    await http.send(read)
    expect(pauses).to.deep.equal([50, 100, 200])
  })

  it('when Retry-After exceeds the remaining budget, it throws the error without waiting', async () => {
    const slow = rejection(
      503,
      { code: 'HTV1_READ_AFTER_UNAVAILABLE', retryable: true },
      { 'retry-after': '2' },
    )
    const { http, pauses } = serverOf([slow])
    const error = await errorOf(http.send(read))
    expect(error.code).to.equal('HTV1_READ_AFTER_UNAVAILABLE')
    expect(pauses).to.deep.equal([2000, 2000])
  })

  it('when the bookmark is stale, it does not retry', async () => {
    const { http, requests } = serverOf([
      rejection(409, { code: 'HTV1_READ_AFTER_STALE_BOOKMARK', retryable: true }),
    ])
    expect((await errorOf(http.send(read))).status).to.equal(409)
    expect(requests()).to.equal(1)
  })

  it('when no response arrives, it retries only idempotent requests', async () => {
    const lost = serverOf(['no response', ok])
    const error = await errorOf(lost.http.send(act))
    expect(error).to.include({ status: 0, outcome: 'unknown', code: 'CLIENT_NO_ANSWER' })
    expect(await serverOf(['no response', ok]).http.send(read)).to.deep.equal({ fine: true })
  })

  it('when a retryable error has outcome not_placed or not_read, it retries a request that is not idempotent', async () => {
    for (const outcome of ['not_placed', 'not_read']) {
      const halted = rejection(503, { code: 'ORACLE_STALE', outcome, retryable: true })
      expect(await serverOf([halted, ok]).http.send(act)).to.deep.equal({ fine: true })
    }
  })

  it('when the request is invalid, it throws an error with code, outcome, details and request id', async () => {
    const details = {
      code: 'PRICE_OFF_TICK',
      field: 'price',
      outcome: 'not_placed',
      retryable: false,
      request_id: 'r1',
    }
    const error = await errorOf(serverOf([rejection(400, details)]).http.send(act))
    expect(error).to.include({ status: 400, code: 'PRICE_OFF_TICK', outcome: 'not_placed', requestId: 'r1' })
    expect(error.details.field).to.equal('price')
  })

  it('when an error response has no details, the outcome is unknown for status 500 and not_read for 404', async () => {
    expect((await errorOf(serverOf([{ status: 500, body: 'oops' }]).http.send(act))).outcome).to.equal(
      'unknown',
    )
    expect((await errorOf(serverOf([{ status: 404, body: {} }]).http.send(act))).outcome).to.equal('not_read')
  })
})
