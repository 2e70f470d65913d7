import { once } from 'node:events'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { createDb, createPool, type Db } from '../../../db/client.ts'
import { pruneRequests } from '../../../db/client-requests.ts'
import { future } from '../../support/markets.ts'
import { freshDatabase } from '../../support/postgres.ts'
import { ServedEngine } from '../../support/served-engine.ts'
import { expectConsistentAccounting } from '../support/accounting.ts'
import { type ApiProcess, startApiProcess } from '../support/api-process.ts'
import { createUser, seedMarkets, signedBody, startExchange, type User } from '../support/exchange-fixture.ts'
import { bodies, sendBatch } from '../support/place-batch.ts'

interface Json {
  readonly status: number
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies by name
  readonly body: any
}

describe('commands over several orders under failures', () => {
  let url: string
  let db: Db
  let served: ServedEngine
  let alice: User
  before(async () => {
    url = await freshDatabase()
    db = createDb(createPool({ url, connections: 4, name: 'test', idleInTransactionMs: 0 }))
    await seedMarkets(db)
    served = await ServedEngine.start(db)
    alice = await createUser(db, 'alice')
  })
  after(async () => {
    await expectConsistentAccounting(db)
    await served.stop()
    await db.destroy()
  })

  const post = async ({ base }: ApiProcess, path: string, body: unknown): Promise<Json | 'lost'> => {
    try {
      const answer = await fetch(`${base}${path}`, {
        method: 'POST',
        headers: { authorization: `Key ${alice.apiKey}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
      return { status: answer.status, body: await answer.json() }
    } catch {
      return 'lost'
    }
  }

  /** Sends it to a process that dies at `point`, then to one that lives. */
  async function sentTwice(point: string, path: string, body: unknown): Promise<Json> {
    const doomed = await startApiProcess(url, { ...served.env, CLEARBATCH_KILL_AT: point })
    expect(await post(doomed, path, body)).to.equal('lost')
    if (doomed.process.signalCode === null) await once(doomed.process, 'exit')
    expect(doomed.process.signalCode).to.equal('SIGKILL')
    const next = await startApiProcess(url, served.env)
    const answer = (await post(next, path, body)) as Json
    next.process.kill('SIGTERM')
    await once(next.process, 'exit')
    return answer
  }

  const idsOf = async (): Promise<string[]> =>
    (
      await db
        .selectFrom('orders')
        .select('order_id')
        .where('user_id', '=', alice.userId)
        .orderBy('order_id')
        .execute()
    ).map(({ order_id }) => order_id)

  for (const mode of ['atomic', 'best_effort']) {
    it(`when the API is killed between commit and answer of an ${mode} batch, repeating the batch returns its answer without a second effect`, async () => {
      const before = await idsOf()
      const orders = bodies(alice, [{}, { market: future, price: '50' }])
      const { status, body } = await sentTwice('after-request-commit', '/v0/orders/place/batch', {
        client_request_id: `crash ${mode}`,
        mode,
        orders,
      })
      expect(status, JSON.stringify(body)).to.equal(200)
      expect(body).to.include({ is_duplicate: true, accepted: 2, refused: 0 })
      expect(body.results.every((result: { is_duplicate: boolean }) => !result.is_duplicate)).to.equal(true)
      const placed = body.results.map((result: { order: { order_id: string } }) => result.order.order_id)
      expect((await idsOf()).filter((id) => !before.includes(id))).to.deep.equal([...placed].sort())
    })
  }

  it('when the API is killed between commit and answer of a batch of cancels, repeating it returns its first results', async () => {
    const hashes: string[] = []
    const api = await startApiProcess(url, served.env)
    for (const terms of [{}, { market: future, price: '50' }]) {
      const { body, hash } = signedBody(alice, terms)
      hashes.push(hash)
      expect(((await post(api, '/v0/orders', body)) as Json).status).to.equal(200)
    }
    api.process.kill('SIGTERM')
    await once(api.process, 'exit')
    const request = { client_request_id: 'crash cancel', orderHashes: hashes }
    const { body } = await sentTwice('after-request-commit', '/v0/orders/cancel/batch', request)
    expect(body.is_duplicate).to.equal(true)
    for (const result of body.results) {
      expect(result).to.include({ cancelled: true, is_duplicate: false })
      expect(result.order.status).to.equal('CANCELLED')
    }
  })

  it('when the API is killed between commit and answer of a cancel of all, repeating it finds nothing left', async () => {
    const { body } = await sentTwice('after-placement-commit', '/v0/orders/cancel/all', {})
    expect(body).to.include({ cancelled_count: 0, is_duplicate: true })
    const live = await db.selectFrom('orders').select('order_id').where('ended_at', 'is', null).execute()
    expect(live).to.deep.equal([])
  })

  for (const isExecuted of [false, true]) {
    it(`when the outcome of ${isExecuted ? 'an executed' : 'a lost'} batch is unknown, repeating the batch returns its answer`, async () => {
      const exchange = await startExchange()
      const bob = await createUser(exchange.db, 'bob')
      const orders = bodies(bob, [{}, { market: future, price: '50' }])
      exchange.engine.faults.push({ reply: { none: 'unknown' }, isExecuted })
      const first = await sendBatch(exchange, bob, orders, { mode: 'atomic', id: 'cut' })
      expect([first.status, first.body.details.code, first.body.details.outcome]).to.deep.equal([
        408,
        'OUTCOME_UNKNOWN',
        'unknown',
      ])
      const second = await sendBatch(exchange, bob, orders, { mode: 'atomic', id: 'cut' })
      expect(second.status, JSON.stringify(second.body)).to.equal(200)
      expect(second.body).to.include({ accepted: 2, is_duplicate: isExecuted })
      const third = await sendBatch(exchange, bob, orders, { mode: 'atomic', id: 'cut' })
      expect(third.body).to.deep.equal({ ...second.body, is_duplicate: true })
      await expectConsistentAccounting(exchange.db)
      await exchange.stop()
    })
  }

  it('when the database drops all connections, the next batch fails without effect or succeeds', async () => {
    const exchange = await startExchange()
    const carol = await createUser(exchange.db, 'carol')
    const orders = bodies(carol, [{}, { market: future, price: '50' }])
    const first = await sendBatch(exchange, carol, orders, { id: 'restart' })
    await exchange.db.executeQuery({
      sql: `select pg_terminate_backend(pid) from pg_stat_activity
            where datname = current_database() and application_name like 'clearbatch api%'`,
      parameters: [],
      query: { kind: 'RawNode' },
    } as never)
    let again = await sendBatch(exchange, carol, orders, { id: 'restart' })
    for (let tries = 0; again.status === 503 && tries < 100; tries++) {
      expect(again.body.details.outcome).to.equal('unknown')
      await new Promise((resolve) => setTimeout(resolve, 50))
      again = await sendBatch(exchange, carol, orders, { id: 'restart' })
    }
    expect(again.body).to.deep.equal({ ...first.body, is_duplicate: true })
    await exchange.stop()
  })

  it('when stored answers are pruned, it deletes the expired ones only', async () => {
    const day = 24 * 3600 * 1000
    const now = Date.now()
    const requests = [day + 1, day + 2, day - 1].map((age, at) => ({
      user_id: alice.userId,
      client_request_id: `old ${at}`,
      digest: Buffer.alloc(32),
      answer: '{}',
      created_at: now - age,
    }))
    await db.insertInto('client_requests').values(requests).execute()
    const before = await db.selectFrom('client_requests').select('client_request_id').execute()
    expect(await pruneRequests(db, { before: now - day, most: 1_000 })).to.equal(2)
    const left = await db.selectFrom('client_requests').select('client_request_id').execute()
    expect(left).to.have.length(before.length - 2)
    expect(left.map(({ client_request_id }) => client_request_id)).to.include('old 2')
  })

  it('when an account has more stored answers than the maximum, it retains the newest ones', async () => {
    const heavy = await createUser(db, 'heavy')
    const light = await createUser(db, 'light')
    const stored = ({ userId }: User, count: number) =>
      Array.from({ length: count }, (_, at) => ({
        ...{ user_id: userId, client_request_id: `${at}`, digest: Buffer.alloc(32), answer: '{}' },
        created_at: Date.now() - 1000 + at,
      }))
    await db.deleteFrom('client_requests').execute()
    await db
      .insertInto('client_requests')
      .values([...stored(heavy, 12), ...stored(light, 5)])
      .execute()
    expect(await pruneRequests(db, { before: 0, most: 5 })).to.equal(7)
    const left = await db.selectFrom('client_requests').selectAll().orderBy('created_at').execute()
    const idsOf = ({ userId }: User) =>
      left.filter(({ user_id }) => user_id === userId).map(({ client_request_id }) => client_request_id)
    expect(idsOf(heavy)).to.deep.equal(['7', '8', '9', '10', '11'])
    expect(idsOf(light)).to.deep.equal(['0', '1', '2', '3', '4'])
  })
})
