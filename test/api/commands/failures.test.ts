import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { createDb, createPool, type Db } from '../../../db/client.ts'
import { e18, future, perpetual } from '../../support/markets.ts'
import { freshDatabase } from '../../support/postgres.ts'
import { startProxy } from '../../support/proxy.ts'
import { ServedEngine } from '../../support/served-engine.ts'
import { expectConsistentAccounting } from '../support/accounting.ts'
import { type ApiProcess, COMPILE_CACHE, startApiProcess } from '../support/api-process.ts'
import {
  apiEnv,
  createUser,
  type Env,
  type ExchangeFixture,
  seedMarkets,
  signedBody,
  startExchange,
  type User,
} from '../support/exchange-fixture.ts'

describe('the command pipeline under load and failures', () => {
  describe('concurrent commands', () => {
    let exchange: ExchangeFixture
    before(async () => {
      exchange = await startExchange()
    })
    after(() => exchange.stop())

    it('when placements in two markets compete for one balance, it accepts exactly as many as the balance covers', async () => {
      // Each order reserves 100.05 in one market and 100.2 in the other: the balance covers 10 + 10 orders.
      const alice = await createUser(exchange.db, 'alice', '2002.5')
      const allTerms = Array.from({ length: 100 }, (_, at) =>
        at % 2 === 0 ? { market: perpetual, price: '100' } : { market: future, price: '50', quantity: '2' },
      )
      const answers = await Promise.all(allTerms.map((terms) => exchange.place(alice, terms)))
      const accepted = answers.filter(({ status }) => status === 200)
      const refused = answers.filter(({ body }) => body.details?.code === 'INSUFFICIENT_MARGIN')
      expect(accepted.length + refused.length).to.equal(100)
      const spent = accepted.reduce((sum, { body }) => sum + BigInt(body.order.reserved_margin_e18_raw), 0n)
      expect(spent <= e18('2002.5')).to.equal(true)
      // For every mix, the balance covers no further order of the cheaper market.
      expect(spent + e18('100.05') > e18('2002.5')).to.equal(true)
      await expectConsistentAccounting(exchange.db)
    })

    it('when 100 placements in one market compete for one balance, it accepts exactly as many as the balance covers', async () => {
      const bob = await createUser(exchange.db, 'bob', '700.4')
      const answers = await Promise.all(Array.from({ length: 100 }, () => exchange.place(bob)))
      expect(answers.filter(({ status }) => status === 200)).to.have.length(7)
      expect(answers.filter(({ body }) => body.details?.code === 'INSUFFICIENT_MARGIN')).to.have.length(93)
      await expectConsistentAccounting(exchange.db)
    })

    it('when placements and cancels of many accounts run concurrently, it keeps reservations and journals consistent', async () => {
      const users = await Promise.all([1, 2, 3, 4].map((n) => createUser(exchange.db, `crowd ${n}`, '500')))
      const run = async (user: User): Promise<void> => {
        for (let round = 0; round < 10; round++) {
          const market = round % 2 === 0 ? perpetual : future
          const price = market === perpetual ? '100' : '50'
          const answers = await Promise.all(
            [0.5, 1, 2].map((n) => exchange.place(user, { market, price, quantity: String(n) })),
          )
          const open = answers.filter(({ status }) => status === 200)
          await Promise.all(open.slice(0, 2).map(({ body }) => exchange.cancel(user, body.order.order_hash)))
        }
      }
      await Promise.all(users.map(run))
      await expectConsistentAccounting(exchange.db)
    })

    it('when the database rejects one of many commands, it fails that command only', async () => {
      const carol = await createUser(exchange.db, 'carol')
      const poison = signedBody(carol, { quantity: '1.234' })
      await exchange.db.executeQuery({
        sql: 'alter table orders add constraint poison check (quantity <> 1234)',
        parameters: [],
        query: { kind: 'RawNode' },
      } as never)
      const bodies = [...Array.from({ length: 9 }, () => signedBody(carol)), poison]
      const answers = await Promise.all(
        bodies.map(({ body }) => exchange.send(carol, 'POST', '/v0/orders', body)),
      )
      expect(answers.slice(0, 9).map(({ status }) => status)).to.deep.equal(Array(9).fill(200))
      expect([answers[9]?.status, answers[9]?.body.details.code]).to.deep.equal([500, 'INTERNAL'])
      await expectConsistentAccounting(exchange.db)
    })

    it('when commands wait too long or the queue is full, it rejects them with OVERLOADED', async () => {
      const small = await startExchange({ MAX_QUEUE: '5', COMMAND_TIMEOUT_MS: '1000' })
      const user = await createUser(small.db, 'alice')
      const release = small.engine.hold()
      const answers = Array.from({ length: 10 }, () => small.place(user))
      const full = (await Promise.all(answers.slice(-3))).map(({ status, body }) => [
        status,
        body.details.code,
      ])
      expect(full).to.deep.equal(Array(3).fill([503, 'OVERLOADED']))
      await new Promise((resolve) => setTimeout(resolve, 1500))
      release()
      const rest = await Promise.all(answers)
      expect(
        rest.every(
          // While the engine does not answer, it is not known whether it has an earlier attempt.
          ({ status, body }) =>
            status === 503 && ['not_placed', 'not_read', 'unknown'].includes(body.details.outcome),
        ),
      ).to.equal(true)
      expect(await small.db.selectFrom('orders').select('order_id').execute()).to.deep.equal([])
      await small.stop()
    })
  })

  describe('lost connections', () => {
    it('when the database ends the connections of the api, it recovers', async () => {
      const exchange = await startExchange()
      const alice = await createUser(exchange.db, 'alice')
      expect((await exchange.place(alice)).status).to.equal(200)
      await endBackends(exchange.db, "application_name like 'clearbatch api%'")
      const after = await retry(() => exchange.place(alice))
      expect(after.status).to.equal(200)
      expect((await retry(() => exchange.get(null, '/health/ready'))).status).to.equal(200)
      await expectConsistentAccounting(exchange.db)
      await exchange.stop()
    })

    for (const [when, trigger] of [
      ['at a write of the engine', 'create trigger cut before insert on orders for each row'],
      [
        'at the commit of the engine',
        'create constraint trigger cut after insert on orders deferrable initially deferred for each row',
      ],
    ] as const)
      it(`when the connection breaks ${when}, it answers OUTCOME_UNKNOWN, and repeating the order resolves it`, async () => {
        const exchange = await startExchange()
        const alice = await createUser(exchange.db, 'alice')
        // The trigger terminates its own backend, so the engine receives no result.
        await raw(
          exchange.db,
          `create function cut() returns trigger language plpgsql as $$
             begin perform pg_terminate_backend(pg_backend_pid()); perform pg_sleep(1); return new; end $$;
           ${trigger} execute function cut()`,
        )
        const { body: order } = signedBody(alice)
        const { status, body } = await exchange.send(alice, 'POST', '/v0/orders', order)
        expect([status, body.details.code]).to.deep.equal([408, 'OUTCOME_UNKNOWN'])
        expect(body.details).to.include({ outcome: 'unknown', retryable: true })
        await raw(exchange.db, 'drop trigger cut on orders')
        const again = await retry(() => exchange.send(alice, 'POST', '/v0/orders', order))
        expect([again.status, again.body.is_duplicate]).to.deep.equal([200, false])
        await expectConsistentAccounting(exchange.db)
        await exchange.stop()
      })

    it('when the database is down, it answers READ_AFTER_UNAVAILABLE with a bookmark and DATABASE_UNAVAILABLE without one', async () => {
      const url = await freshDatabase()
      const proxy = await startProxy(url)
      const exchange = await startExchange({ DATABASE_URL: proxy.url }, url)
      const alice = await createUser(exchange.db, 'alice')
      const { body } = await exchange.place(alice)
      const { shard_id, shard_seq } = body.read_after
      const path = '/v0/orderbook/by-market/1'
      const marked = `${path}?read_after_shard_id=${shard_id}&read_after_shard_seq=${shard_seq}`

      const waiting = exchange.get(null, marked)
      await new Promise((resolve) => setTimeout(resolve, 100))
      await proxy.cut()
      const lost = [await waiting, await exchange.get(null, marked)]
      for (const { status, body: answer, headers } of lost) {
        expect([status, answer.details.code]).to.deep.equal([503, 'HTV1_READ_AFTER_UNAVAILABLE'])
        expect(headers['retry-after']).to.equal('2')
      }
      const plain = await exchange.get(null, path)
      expect([plain.status, plain.body.details.code]).to.deep.equal([503, 'DATABASE_UNAVAILABLE'])
      const place = await exchange.place(alice)
      expect([place.status, place.body.details.outcome]).to.deep.equal([503, 'unknown'])
      expect((await exchange.get(null, '/health/ready')).status).to.equal(503)

      await proxy.restore()
      expect((await retry(() => exchange.place(alice))).status).to.equal(200)
      expect((await retry(() => exchange.get(null, '/health/ready'))).status).to.equal(200)
      await exchange.project()
      expect((await exchange.get(null, marked)).status).to.equal(200)
      await exchange.stop()
      await proxy.cut()
    })
  })

  const raw = (db: Db, sql: string): Promise<unknown> =>
    db.executeQuery({ sql, parameters: [], query: { kind: 'RawNode' } } as never)
  const endBackends = async (db: Db, which: string): Promise<void> => {
    for (let tries = 0; tries < 200; tries++) {
      const { rows } = (await raw(
        db,
        `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and ${which}`,
      )) as { rows: unknown[] }
      if (rows.length > 0) return
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
    throw new Error(`no backend with ${which}`)
  }
  const retry = async <T extends { status: number }>(work: () => Promise<T>): Promise<T> => {
    for (let tries = 0; ; tries++) {
      const answer = await work()
      if (answer.status === 200 || tries > 100) return answer
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }

  describe('the process', () => {
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
      await served.stop()
      await db.destroy()
    })

    const start = (env: Env = {}): Promise<ApiProcess> => startApiProcess(url, { ...served.env, ...env })
    const post = (base: string, body: unknown): Promise<Response> =>
      fetch(`${base}/v0/orders`, {
        method: 'POST',
        headers: { authorization: `Key ${alice.apiKey}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })

    it('when it is killed between commit and answer, the order is stored, and repeating it returns the same order', async () => {
      const doomed = await start({ CLEARBATCH_KILL_AT: 'after-placement-commit' })
      const { body, hash } = signedBody(alice)
      const lost = await post(doomed.base, body).then(
        () => 'answered',
        () => 'lost',
      )
      expect(lost).to.equal('lost')
      if (doomed.process.signalCode === null) await once(doomed.process, 'exit')
      expect(doomed.process.signalCode).to.equal('SIGKILL')
      const stored = await db.selectFrom('orders').select('order_id').where('hash', '=', hash).execute()
      expect(stored).to.have.length(1)

      const next = await start()
      const answer = (await (await post(next.base, body)).json()) as {
        is_duplicate: boolean
        order: { order_id: string }
      }
      expect([answer.is_duplicate, answer.order.order_id]).to.deep.equal([true, stored[0]?.order_id])
      await expectConsistentAccounting(db)
      next.process.kill('SIGTERM')
      await once(next.process, 'exit')
    })

    it('when it receives SIGTERM, it answers the accepted commands and exits with 0', async () => {
      const { process: child, base } = await start()
      const bodies = Array.from({ length: 40 }, () => signedBody(alice, { quantity: '0.01' }))
      const answers = bodies.map(({ body }) =>
        post(base, body).then(
          ({ status }) => status,
          () => 0,
        ),
      )
      await Promise.race(answers)
      child.kill('SIGTERM')
      const [code, signal] = (await once(child, 'exit')) as [number, string | null]
      expect(signal, 'no signal ended it').to.equal(null)
      const statuses = await Promise.all(answers)
      expect(code).to.equal(0)
      const hashes = bodies.map(({ hash }) => hash)
      const stored = await db.selectFrom('orders').select('hash').where('hash', 'in', hashes).execute()
      expect(stored).to.have.length(statuses.filter((status) => status === 200).length)
      await expectConsistentAccounting(db)
    })

    it('when an environment variable is missing or invalid, it names the variable and exits with 1', async () => {
      for (const env of [
        { DATABASE_URL: '' },
        { CHAIN_ID: 'six' },
        { ENGINE_URL: '' },
        { ADDRESS_USDM: '0x12' },
      ]) {
        const all = { PATH: process.env.PATH ?? '', ...COMPILE_CACHE, ...apiEnv(url, env as never) }
        const child = spawn(process.execPath, ['api/main.ts'], {
          env: all,
          stdio: ['ignore', 'ignore', 'pipe'],
        })
        let text = ''
        child.stderr?.on('data', (chunk) => {
          text += chunk
        })
        const [code] = (await once(child, 'close')) as [number]
        expect(code).to.equal(1)
        expect(text).to.include(Object.keys(env)[0])
      }
    })
  })
})
