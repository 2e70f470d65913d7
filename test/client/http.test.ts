import { expect } from 'chai'
import { describe, it } from 'mocha'
import { ClearbatchError } from '../../client/errors.ts'
import { createHttp, type Request } from '../../client/http.ts'

interface Answer {
  readonly status: number
  readonly body: unknown
  readonly headers?: Record<string, string>
}

const refusal = (status: number, details: object, headers?: Record<string, string>): Answer => ({
  status,
  body: { message: 'no', details },
  ...(headers === undefined ? {} : { headers }),
})

/** A server that gives these answers in turn, then the last one for ever; `silence` gives none. */
function serverOf(answers: readonly (Answer | 'silence')[]) {
  const pauses: number[] = []
  let asked = 0
  const http = createHttp({
    baseUrl: 'http://exchange/',
    budgetMs: 5_000,
    now: () => pauses.reduce((sum, ms) => sum + ms, 0),
    sleep: async (ms) => {
      pauses.push(ms)
    },
    fetch: async () => {
      const answer = answers[Math.min(asked++, answers.length - 1)] as Answer | 'silence'
      if (answer === 'silence') throw new TypeError('fetch failed')
      const { status, body, headers } = answer
      return new Response(JSON.stringify(body), { status, ...(headers === undefined ? {} : { headers }) })
    },
  })
  return { http, pauses, asked: () => asked }
}

const read: Request = { method: 'GET', path: '/v0/x', repeatable: true }
const act: Request = { method: 'POST', path: '/v0/x', body: {}, repeatable: false }
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

describe('client/http', () => {
  it('given PENDING with Retry-After, it waits exactly that long and asks again', async () => {
    const pending = refusal(
      503,
      { code: 'HTV1_READ_AFTER_PENDING', retryable: true },
      { 'retry-after': '0.25' },
    )
    const { http, pauses } = serverOf([pending, pending, ok])
    expect(await http.send(read)).to.deep.equal({ fine: true })
    expect(pauses).to.deep.equal([250, 250])
  })

  it('given CAPACITY without a delay, it backs off further each time', async () => {
    const busy = refusal(429, { code: 'HTV1_READ_AFTER_CAPACITY', retryable: true })
    const { http, pauses } = serverOf([busy, busy, busy, ok])
    await http.send(read)
    expect(pauses).to.deep.equal([50, 100, 200])
  })

  it('given a delay beyond the budget, it gives the error back instead of waiting', async () => {
    const slow = refusal(
      503,
      { code: 'HTV1_READ_AFTER_UNAVAILABLE', retryable: true },
      { 'retry-after': '2' },
    )
    const { http, pauses } = serverOf([slow])
    const error = await errorOf(http.send(read))
    expect(error.code).to.equal('HTV1_READ_AFTER_UNAVAILABLE')
    expect(pauses).to.deep.equal([2000, 2000])
  })

  it('given a stale bookmark, it does not try again', async () => {
    const { http, asked } = serverOf([
      refusal(409, { code: 'HTV1_READ_AFTER_STALE_BOOKMARK', retryable: true }),
    ])
    expect((await errorOf(http.send(read))).status).to.equal(409)
    expect(asked()).to.equal(1)
  })

  it('given no answer, it repeats only what cannot act twice', async () => {
    const lost = serverOf(['silence', ok])
    const error = await errorOf(lost.http.send(act))
    expect(error).to.include({ status: 0, outcome: 'unknown', code: 'CLIENT_NO_ANSWER' })
    expect(await serverOf(['silence', ok]).http.send(read)).to.deep.equal({ fine: true })
  })

  it('given a refusal that placed nothing and may be retried, it repeats even what acts', async () => {
    const halted = refusal(503, { code: 'ORACLE_STALE', outcome: 'not_placed', retryable: true })
    expect(await serverOf([halted, ok]).http.send(act)).to.deep.equal({ fine: true })
  })

  it('given a wrong request, it says code, outcome, details and request id', async () => {
    const details = {
      code: 'PRICE_OFF_TICK',
      field: 'price',
      outcome: 'not_placed',
      retryable: false,
      request_id: 'r1',
    }
    const error = await errorOf(serverOf([refusal(400, details)]).http.send(act))
    expect(error).to.include({ status: 400, code: 'PRICE_OFF_TICK', outcome: 'not_placed', requestId: 'r1' })
    expect(error.details.field).to.equal('price')
  })

  it('given an error without details, it assumes the worst of a server fault and the best of a refusal', async () => {
    expect((await errorOf(serverOf([{ status: 500, body: 'oops' }]).http.send(act))).outcome).to.equal(
      'unknown',
    )
    expect((await errorOf(serverOf([{ status: 404, body: {} }]).http.send(act))).outcome).to.equal(
      'not_placed',
    )
  })
})
