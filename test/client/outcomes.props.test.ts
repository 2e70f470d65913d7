/** The outcome of a command over all of its attempts, against a server whose answers and executions the test decides. */
import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { ClearbatchError, errorOfResponse, errorWithoutResponse } from '../../client/errors.ts'
import { createHttpSession } from '../../client/http-session.ts'
import type { LiveConnection } from '../../client/live/connection.ts'
import { LiveOrders } from '../../client/live/live-orders.ts'
import { IDENTITY, OutcomeMemory } from '../../client/outcomes.ts'

/** One attempt: whether the exchange executes it, and how it is answered. */
interface Attempt {
  readonly executes: boolean
  readonly answer: 'ok' | 'lost' | 'unread' | 'unknown' | 'halted' | 'proxy'
}

const attempt: fc.Arbitrary<Attempt> = fc.oneof(
  fc.constant({ executes: true, answer: 'ok' } as const),
  fc.record({ executes: fc.boolean(), answer: fc.constantFrom('lost', 'unknown', 'proxy') }),
  fc.record({ executes: fc.constant(false), answer: fc.constantFrom('unread', 'halted') }),
)

const failure = (code: string, outcome: string) => ({
  message: 'no',
  details: { code, outcome, retryable: true },
})

/** Answers after which a client does not know whether the attempt was executed. */
const IN_DOUBT: readonly string[] = ['lost', 'unknown', 'proxy']

/** Status and body; null without an answer. The exchange itself obeys the law: it recognises an order that was placed. */
function answerOf({ answer }: Attempt, isPlaced: boolean): readonly [number, unknown] | null {
  switch (answer) {
    case 'lost':
      return null
    case 'unread':
      return [429, failure('RATE_LIMITED', 'not_read')]
    case 'unknown':
      return [408, failure('OUTCOME_UNKNOWN', 'unknown')]
    case 'proxy':
      return [502, 'bad gateway']
    case 'halted':
      return isPlaced ? [200, {}] : [503, failure('ORACLE_STALE', 'not_placed')]
    case 'ok':
      return [200, {}]
  }
}

/** An exchange with one order, which judges every error by the attempts before it. */
class Exchange {
  #isPlaced = false
  #mayBePlaced = false
  readonly #attempts: Attempt[]

  constructor(attempts: readonly Attempt[]) {
    this.#attempts = [...attempts]
  }

  get isOver(): boolean {
    return this.#attempts.length === 0
  }

  next(): readonly [number, unknown] | null {
    const next = this.#attempts.shift() ?? { executes: true, answer: 'ok' as const }
    const answer = answerOf(next, this.#isPlaced)
    this.#isPlaced ||= next.executes
    this.#mayBePlaced ||= this.#isPlaced || IN_DOUBT.includes(next.answer)
    return answer
  }

  /** The program forgets its attempts. What the exchange says of an order that was not placed is true. */
  forget(): void {
    this.#mayBePlaced = this.#isPlaced
  }

  judge(error: unknown): void {
    if (!(error instanceof ClearbatchError)) throw error
    if (this.#mayBePlaced) expect(error.outcome).to.not.equal('not_placed')
    else expect(error.outcome).to.be.oneOf(['not_placed', 'not_read'])
  }
}

const body = { salt: '1', signature: '0xab01' }

/** A session whose server answers with `next`, on a clock of its own. */
function sessionOf(next: Exchange['next'], budgetMs: number, outcomes = new OutcomeMemory()) {
  let now = 0
  return createHttpSession({
    baseUrl: 'http://exchange',
    budgetMs,
    outcomes,
    now: () => now,
    sleep: async (ms) => {
      now += ms
    },
    fetch: async () => {
      const answer = next()
      if (answer === null) throw new TypeError('fetch failed')
      return new Response(JSON.stringify(answer[1]), { status: answer[0] })
    },
  })
}

/**
 * Sends the order again and again, over REST and over the live feed in turn, over REST with some retries. The program restarts before one of
 * the calls, and has only the signed order then.
 */
async function drive(attempts: readonly Attempt[], retries: number, restartAt: number): Promise<void> {
  const exchange = new Exchange(attempts)
  const connection = {
    call: async () => {
      const answer = exchange.next()
      if (answer === null) throw errorWithoutResponse(new Error('disconnected'))
      if (answer[0] !== 200) throw errorOfResponse(answer[0], answer[1], null)
      return { data: {} }
    },
  } as unknown as LiveConnection
  const start = () => {
    const outcomes = new OutcomeMemory()
    const http = sessionOf(() => exchange.next(), retries * 50, outcomes)
    const live = new LiveOrders({ connection: () => connection, note: () => {}, budgetMs: 0, outcomes })
    return { http, live }
  }
  let { http, live } = start()
  for (let call = 0; !exchange.isOver; call++) {
    if (call === restartAt) {
      exchange.forget()
      ;({ http, live } = start())
    }
    const sent = call % 2 === 0 ? http.post('/v0/orders', body, IDENTITY.order(body)) : live.send({ body })
    await sent.then(
      () => {},
      (error) => exchange.judge(error),
    )
  }
}

describe('the outcome of a command', () => {
  it('when an attempt may have been executed, no later error over REST or the live feed is not_placed', async () => {
    const attempts = fc.array(attempt, { minLength: 1, maxLength: 8 })
    await fc.assert(fc.asyncProperty(attempts, fc.nat(3), fc.nat(8), drive), { numRuns: 300 })
  })

  it('when a command has no identity, its outcome covers its own attempts only', async () => {
    const answers: (readonly [number, unknown] | null)[] = [
      null,
      [429, failure('RATE_LIMITED', 'not_read')],
      [200, {}],
      [429, failure('RATE_LIMITED', 'not_read')],
    ]
    const http = sessionOf(() => answers.shift() ?? null, 60)
    const outcome = () =>
      http.post('/v0/orders/cancel/all', {}).then(
        () => 'ok',
        (error) => error.outcome,
      )
    expect(await outcome()).to.equal('unknown')
    expect(await outcome()).to.equal('ok')
    answers.push([400, { message: 'no', details: { code: 'X', outcome: 'not_placed', retryable: false } }])
    expect(await outcome()).to.equal('not_placed')
  })
})
