/**
 * Once a command may have been executed, no later answer says that it was not. Random attempts at the same commands, over two api processes,
 * while reads, locks, parameters and the database fail; the rows of the database judge every answer.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import fc from 'fast-check'
import { after, before, describe, it } from 'mocha'
import { perpetual } from '../../support/markets.ts'
import { freshDatabase } from '../../support/postgres.ts'
import { type CutProxy, startProxy } from '../../support/proxy.ts'
import { emptyRedis, ON_REDIS, redisUrl } from '../../support/redis.ts'
import {
  type Answer,
  createUser,
  type Env,
  type ExchangeFixture,
  signedBody,
  startExchange,
  startSecondApi,
  type User,
} from '../support/exchange-fixture.ts'
import { sendBatch } from '../support/place-batch.ts'

/** What fails while a command is sent. */
const FAULTS = ['none', 'fills', 'database', 'lock', 'signature', 'leverage'] as const
/** The request is refused before its command is read. */
const UNREAD = ['no key', 'unknown key', 'limit', 'body', 'encoding'] as const
type Unread = (typeof UNREAD)[number]
type Fault = (typeof FAULTS)[number] | (typeof UNREAD)[number]

describe('the outcome of repeated commands', () => {
  let exchange: ExchangeFixture
  /** Its commands wait for a lock only briefly. */
  let hurried: ExchangeFixture
  let behindProxy: ExchangeFixture
  let limited: ExchangeFixture
  let proxy: CutProxy
  let alice: User
  const sql = (text: string): Promise<unknown> =>
    exchange.db.executeQuery({ sql: text, parameters: [], query: { kind: 'RawNode' } } as never)

  before(async () => {
    const url = await freshDatabase()
    proxy = await startProxy(url)
    exchange = await startExchange({}, url)
    hurried = await startSecondApi(exchange, { COMMAND_TIMEOUT_MS: '200' })
    behindProxy = await startSecondApi(exchange, { DATABASE_URL: proxy.url, COMMAND_TIMEOUT_MS: '200' })
    limited = await startSecondApi(exchange, { RATE_LIMIT_ORDERS: '1', RATE_LIMIT_CANCELS: '1' })
    alice = await createUser(exchange.db, 'alice', '100000000')
  })
  after(async () => {
    await behindProxy.stop()
    await hurried.stop()
    await limited.stop()
    await exchange.stop()
    await proxy.cut()
  })

  /** The api that the fault concerns. */
  const apiOf = (fault: Fault, isSecond = false): ExchangeFixture => {
    if (fault === 'lock') return hurried
    return fault === 'database' || isSecond ? behindProxy : exchange
  }

  const isPlaced = async (hash: string): Promise<boolean> =>
    (await exchange.db.selectFrom('orders').select('hash').where('hash', '=', hash).execute()).length === 1

  const byHash = (hash: string) => exchange.db.updateTable('orders').where('hash', '=', hash)

  /** Runs `work` while the fault lasts. */
  async function during<Value>(fault: Fault, hash: string, work: () => Promise<Value>): Promise<Value> {
    if (fault === 'fills') {
      // Only orders with fills read them.
      await byHash(hash).set({ filled: 1 }).execute()
      await sql('alter table read.fills rename to fills_away')
      return work().finally(async () => {
        await sql('alter table read.fills_away rename to fills')
        await byHash(hash).set({ filled: 0 }).execute()
      })
    }
    if (fault === 'database') {
      await proxy.cut()
      return work().finally(() => proxy.restore())
    }
    if (fault !== 'lock') return work()
    const sent: Promise<Value>[] = []
    await exchange.db.transaction().execute(async (tx) => {
      await tx.selectFrom('shards').select('head').where('shard', '=', 'm1').forUpdate().execute()
      sent.push(work())
      await Promise.race([...sent, new Promise((resolve) => setTimeout(resolve, 300))])
    })
    return sent[0] as Promise<Value>
  }

  const sent = (fault: Fault, body: Record<string, unknown>): Record<string, unknown> => {
    if (fault === 'signature') return { ...body, signature: `0x${'11'.repeat(64)}1b01` }
    // As if the parameters of the market had changed since the first attempt.
    return fault === 'leverage' ? { ...body, leverage: 1_000_000 } : body
  }

  /** Sends a command that is refused before it is read. */
  async function sendUnread(fault: Unread, path: string, body: Record<string, unknown>): Promise<Answer> {
    const send = (headers: Env) => exchange.send(null, 'POST', path, body, headers)
    const authorization = `Key ${alice.apiKey}`
    switch (fault) {
      case 'no key':
        return send({})
      case 'unknown key':
        return send({ authorization: `${authorization.slice(0, -4)}0000` })
      case 'encoding':
        return send({ authorization, 'content-encoding': 'br' })
      case 'body':
        return exchange.send(alice, 'POST', path, { ...body, size: 1 })
      case 'limit':
        for (;;) {
          const answer = await limited.send(alice, 'POST', path, body)
          if (answer.status === 429) return answer
        }
    }
  }

  const isUnread = (fault: Fault): fault is Unread => (UNREAD as readonly string[]).includes(fault)

  function judge(answer: Answer, wasPlaced: boolean, what: string): void {
    const { status, body } = answer
    if (status === 200) return
    if (wasPlaced) expect(body.details.outcome, `${what}: ${JSON.stringify(body)}`).to.not.equal('not_placed')
  }

  const faults = fc.array(fc.record({ fault: fc.constantFrom(...FAULTS, ...UNREAD), second: fc.boolean() }), {
    minLength: 2,
    maxLength: 6,
  })

  it('when an order was placed, no later answer to it is not_placed', async () => {
    let rejectedLater = 0
    await fc.assert(
      fc.asyncProperty(faults, async (attempts) => {
        const { body, hash } = signedBody(alice)
        for (const { fault, second } of [{ fault: 'none', second: false } as const, ...attempts]) {
          const wasPlaced = await isPlaced(hash)
          const answer = isUnread(fault)
            ? await sendUnread(fault, '/v0/orders', body)
            : await during(fault, hash, () =>
                apiOf(fault, second).send(alice, 'POST', '/v0/orders', sent(fault, body)),
              )
          judge(answer, wasPlaced, fault)
          if (wasPlaced && answer.status !== 200) rejectedLater++
        }
        await exchange.cancel(alice, hash)
      }),
      { numRuns: 12, examples: [[[...FAULTS, ...UNREAD].map((fault) => ({ fault, second: false }))]] },
    )
    expect(rejectedLater).to.be.above(4)
  }).timeout(120_000)

  it('when a batch was executed, no later answer to it is not_placed', async () => {
    for (const mode of ['atomic', 'best_effort'] as const) {
      const { body, hash } = signedBody(alice)
      const id = `law ${mode}`
      expect((await sendBatch(exchange, alice, [body], { mode, id })).status).to.equal(200)
      for (const fault of ['database', 'lock'] as const) {
        judge(
          await during(fault, hash, () => sendBatch(apiOf(fault), alice, [body], { mode, id })),
          true,
          `${mode} ${fault}`,
        )
      }
      // The order in another batch, under parameters that refuse it now.
      const again = { ...body, leverage: 1_000_000 }
      const other = await sendBatch(exchange, alice, [again], { mode, id: `${id} again` })
      const error = mode === 'atomic' ? other.body : other.body.results[0].error
      expect(error.details, JSON.stringify(error)).to.include({ code: 'LEVERAGE_CAP', outcome: 'unknown' })
    }
  })

  it('when a cancel was executed, no later answer to it is not_placed', async () => {
    const { body, hash } = signedBody(alice)
    expect((await exchange.send(alice, 'POST', '/v0/orders', body)).status).to.equal(200)
    expect((await exchange.cancel(alice, hash)).body.cancelled).to.equal(true)
    for (const fault of ['database', 'lock'] as const) {
      judge(await during(fault, hash, () => apiOf(fault).cancel(alice, hash)), true, fault)
    }
  })

  for (const fault of UNREAD)
    it(`when a command is refused before it is read (${fault}), the answer claims nothing of earlier attempts`, async () => {
      const { body, hash } = signedBody(alice)
      for (const isRepeated of [false, true]) {
        const answer = await sendUnread(fault, '/v0/orders', body)
        expect(answer.body.details.outcome, String(isRepeated)).to.equal('not_read')
        expect((await exchange.send(alice, 'POST', '/v0/orders', body)).status).to.equal(200)
      }
      const path = `/v0/orders/cancel/by-hash/${hash}`
      expect((await exchange.cancel(alice, hash)).body.cancelled).to.equal(true)
      expect((await sendUnread(fault, path, {})).body.details.outcome).to.equal('not_read')
    })

  it('when a recognised order cannot read its fills, the error says that the order is placed', async () => {
    const { body, hash } = signedBody(alice)
    expect((await exchange.send(alice, 'POST', '/v0/orders', body)).status).to.equal(200)
    const { status, body: error } = await during('fills', hash, () =>
      exchange.send(alice, 'POST', '/v0/orders', body),
    )
    expect(status).to.equal(500)
    expect(error.details).to.include({ outcome: 'placed', order_hash: hash })
  })

  /** Sends a placement, runs `work` while it waits for its rows, and returns what that has answered. */
  async function whileWaiting(body: object, work: () => Promise<Answer>): Promise<Answer> {
    const waiting: Promise<Answer>[] = []
    const during = await exchange.db.transaction().execute(async (tx) => {
      await tx.selectFrom('shards').select('head').where('shard', '=', 'm1').forUpdate().execute()
      waiting.push(exchange.send(alice, 'POST', '/v0/orders', body))
      while (!(await isAnyWaiting())) await sleep(10)
      return work()
    })
    expect((await Promise.all(waiting)).map(({ status }) => status)).to.deep.equal([200])
    return during
  }

  async function isAnyWaiting(): Promise<boolean> {
    const { rows } = (await sql(
      'select from pg_locks l join pg_stat_activity a using (pid) where not l.granted and a.datname = current_database()',
    )) as { rows: unknown[] }
    return rows.length > 0
  }

  for (const fault of ['signature', 'leverage'] as const)
    it(`when an order waits for its rows, another api that refuses it (${fault}) does not say that it is not placed`, async () => {
      const { body } = signedBody(alice)
      const refused = await whileWaiting(body, () =>
        hurried.send(alice, 'POST', '/v0/orders', sent(fault, body)),
      )
      expect(refused.body.details.outcome, JSON.stringify(refused.body)).to.equal('unknown')
    })

  it('when an order waits for its rows, a cancel at another api does not miss it', async () => {
    const { body, hash } = signedBody(alice)
    const refused = await whileWaiting(body, () => hurried.cancel(alice, hash))
    expect([refused.status, refused.body.details.outcome]).to.deep.equal([408, 'unknown'])
    expect((await exchange.cancel(alice, hash)).body.cancelled).to.equal(true)
  })

  it('when an order was never placed, a refusal says so', async () => {
    const { body } = signedBody(alice, { market: perpetual })
    for (const fault of ['signature', 'leverage', 'lock'] as const) {
      const answer = await during(fault, '0x', () =>
        apiOf(fault).send(alice, 'POST', '/v0/orders', sent(fault, body)),
      )
      // A commit that is not answered in time leaves the outcome unknown.
      const possible = fault === 'lock' ? ['not_placed', 'unknown'] : ['not_placed']
      if (answer.status !== 200) expect(answer.body.details.outcome, fault).to.be.oneOf(possible)
    }
  })
})

describe(`the outcome of commands while Redis is lost ${ON_REDIS}`, () => {
  const url = redisUrl(11)
  let proxy: CutProxy
  let exchange: ExchangeFixture
  /** Counts its limits by itself. */
  let other: ExchangeFixture
  let alice: User

  before(async function () {
    if (url === null) return this.skip()
    ;(await emptyRedis(url)).disconnect()
    proxy = await startProxy(url)
    exchange = await startExchange({ REDIS_URL: proxy.url })
    other = await startSecondApi(exchange)
    alice = await createUser(exchange.db, 'alice')
  })
  after(async () => {
    if (url === null) return
    await other.stop()
    await exchange.stop()
    await proxy.cut()
  })

  /** Redis is lost after it has received the count of this request, whose answer it does not send. */
  async function losing(work: () => Promise<Answer>): Promise<Answer> {
    proxy.cutAt('clearbatch-limit-', 'after')
    const answer = await work()
    await proxy.cut()
    return answer
  }

  const stepOf = { placed: 0, refused: 1, cancelled: 2 } as const

  for (const lost of Object.keys(stepOf) as (keyof typeof stepOf)[])
    it(`when Redis is lost while an order is ${lost}, no answer says that it was not`, async () => {
      const { body, hash } = signedBody(alice)
      const steps: (() => Promise<Answer>)[] = [
        () => exchange.send(alice, 'POST', '/v0/orders', body),
        () => exchange.send(alice, 'POST', '/v0/orders', { ...body, leverage: 1_000_000 }),
        () => exchange.cancel(alice, hash),
      ]
      const answers: Answer[] = []
      for (const [at, step] of steps.entries())
        answers.push(await (at === stepOf[lost] ? losing(step) : step()))
      const [placed, refused, cancelled] = answers
      expect([placed?.status, placed?.body.is_duplicate]).to.deep.equal([200, false])
      expect(refused?.body.details).to.include({ code: 'LEVERAGE_CAP', outcome: 'unknown' })
      expect([cancelled?.status, cancelled?.body.cancelled]).to.deep.equal([200, true])
      for (const api of [exchange, other]) {
        expect((await api.send(alice, 'POST', '/v0/orders', body)).body.is_duplicate).to.equal(true)
        expect((await api.cancel(alice, hash)).body.is_duplicate).to.equal(true)
      }
      await proxy.restore()
    })
})
