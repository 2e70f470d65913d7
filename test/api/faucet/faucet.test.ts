/** The faucet's limits and waits, between processes that share a database. The keeper is played by the test. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { sql } from 'kysely'
import { after, afterEach, before, beforeEach, describe, it } from 'mocha'
import { readConfig } from '../../../api/config.ts'
import { FAUCET_ANSWERS_CHANNEL, FAUCET_ERRORS } from '../../../db/faucet-requests.ts'
import { ConfigError } from '../../../service/environment.ts'
import {
  type Answer,
  apiEnv,
  createUser,
  type ExchangeFixture,
  startExchange,
  startSecondApi,
  type User,
} from '../support/exchange-fixture.ts'
import { untilLockWait } from '../support/wait.ts'

const ENV = { FAUCET_PER_ACCOUNT: '2', FAUCET_PER_ADDRESS: '3', FAUCET_WAIT_MS: '6000', TRUST_PROXY: '1' }

describe('the faucet', function () {
  this.timeout(60_000)
  let exchange: ExchangeFixture
  let other: ExchangeFixture
  let users = 0
  let from = ''

  before(async () => {
    exchange = await startExchange(ENV)
    other = await startSecondApi(exchange, ENV)
  })
  beforeEach(() => {
    from = `203.0.113.${++users}`
  })
  afterEach(() => exchange.db.deleteFrom('faucet_requests').execute())
  after(async () => {
    await other.stop()
    await exchange.stop()
  })

  const newUser = (): Promise<User> => createUser(exchange.db, `user ${++users}`)
  const ask = (user: User, by = exchange): Promise<Answer> =>
    by.send(user, 'POST', '/v0/faucet', {}, { 'x-forwarded-for': from })
  const codeOf = ({ status, body }: Answer) => [status, body.details?.code ?? body.status]
  const requests = () => exchange.db.selectFrom('faucet_requests').selectAll().orderBy('request_id').execute()

  /** Ends what is requested, as the keeper does. */
  async function end(set: { status: 'SIGNED' | 'MINED' | 'FAILED'; tx_hash?: string; error?: string }) {
    for (const deadline = Date.now() + 5_000; Date.now() < deadline; ) {
      const ended = await exchange.db
        .updateTable('faucet_requests')
        .set(set)
        .where('status', 'in', ['REQUESTED', 'SIGNED'])
        .returning('request_id')
        .execute()
      for (const { request_id } of ended)
        await sql`select pg_notify(${FAUCET_ANSWERS_CHANNEL}, ${String(request_id)})`.execute(exchange.db)
      if (ended.length > 0) return ended.length
      await sleep(5)
    }
    throw new Error('nothing was requested')
  }
  const paid = async (asked: Promise<Answer>): Promise<Answer> => {
    await end({ status: 'MINED', tx_hash: '0xfeed' })
    return asked
  }

  it('when two processes get requests of one account at once, they are one request with one payout', async () => {
    const user = await newUser()
    const all = await exchange.db.transaction().execute(async (tx) => {
      await sql`select pg_advisory_xact_lock(hashtextextended(${`faucet account ${user.userId}`}, 0))`.execute(
        tx,
      )
      const asked = [ask(user), ask(user, other), ask(user, other)]
      await untilLockWait(exchange.db, asked.length)
      return asked
    })
    await sleep(1_000)
    expect(await end({ status: 'MINED', tx_hash: '0xfeed' })).to.equal(1)
    const answers = await Promise.all(all)
    expect(answers.map(codeOf)).to.deep.equal(Array(3).fill([200, 'MINED']))
    expect(new Set(answers.map(({ body }) => body.request_id)).size).to.equal(1)
    expect(await requests()).to.have.length(1)
  })

  it('when the keeper stores the result, the answer comes with its notification, not with a poll', async () => {
    const asked = ask(await newUser())
    await end({ status: 'SIGNED', tx_hash: '0xfeed' })
    const signed = performance.now()
    await end({ status: 'MINED', tx_hash: '0xfeed' })
    expect(codeOf(await asked)).to.deep.equal([200, 'MINED'])
    expect(performance.now() - signed).to.be.lessThan(500)
  })

  it('when an account or a network address was paid as often as it may be, the next request waits for the window', async () => {
    const [alice, bob] = [await newUser(), await newUser()]
    expect(codeOf(await paid(ask(alice)))).to.deep.equal([200, 'MINED'])
    expect(codeOf(await paid(ask(alice, other)))).to.deep.equal([200, 'MINED'])
    const third = await ask(alice)
    expect(codeOf(third)).to.deep.equal([429, 'FAUCET_LIMIT'])
    expect(third.body.details).to.include({ scope: 'account', retryable: true, outcome: 'not_placed' })
    expect(Number(third.headers['retry-after'])).to.be.within(24 * 3_600 - 60, 24 * 3_600)
    expect(codeOf(await paid(ask(bob)))).to.deep.equal([200, 'MINED'])
    const fourth = await ask(bob, other)
    expect([...codeOf(fourth), fourth.body.details.scope]).to.deep.equal([429, 'FAUCET_LIMIT', 'address'])

    await exchange.db
      .updateTable('faucet_requests')
      .set({ created_at: Date.now() - 25 * 3_600_000 })
      .execute()
    expect(codeOf(await paid(ask(alice)))).to.deep.equal([200, 'MINED'])
  })

  it('when many accounts request from one address at once, no more are stored than it may', async () => {
    const accounts = await Promise.all(Array.from({ length: 8 }, newUser))
    const answers = Promise.all(accounts.map((user, at) => ask(user, at % 2 ? exchange : other)))
    await sleep(1_000)
    expect(await requests()).to.have.length(3)
    await end({ status: 'MINED', tx_hash: '0xfeed' })
    const statuses = (await answers).map(({ status }) => status).sort()
    expect(statuses).to.deep.equal([...Array(3).fill(200), ...Array(5).fill(429)])
  })

  it('when a payout fails, the answer has the reason, and the failure does not count', async () => {
    const user = await newUser()
    const cases = [
      [FAUCET_ERRORS.empty, 'FAUCET_EMPTY', '60'],
      [FAUCET_ERRORS.reverted, 'FAUCET_REVERTED', '30'],
      [FAUCET_ERRORS.replaced, 'FAUCET_FAILED', '5'],
    ] as const
    for (const [error, code, retryAfter] of cases) {
      const asked = ask(user)
      await end({ status: 'FAILED', error })
      const answer = await asked
      expect(codeOf(answer)).to.deep.equal([503, code])
      expect(answer.headers['retry-after']).to.equal(retryAfter)
    }
    expect(codeOf(await paid(ask(user)))).to.deep.equal([200, 'MINED'])
  })

  it('when no keeper answers in time, the request stays, and the next one joins it', async () => {
    const user = await newUser()
    const hasty = await startSecondApi(exchange, { ...ENV, FAUCET_WAIT_MS: '100' })
    const late = await ask(user, hasty)
    await hasty.stop()
    expect(codeOf(late)).to.deep.equal([408, 'FAUCET_PENDING'])
    expect(late.body.details.outcome).to.equal('unknown')
    const asked = ask(user, other)
    await sleep(1_000)
    const answer = await paid(asked)
    expect(answer.body.request_id).to.equal(late.body.details.faucet_request_id)
  })

  it('when the chain has no faucet, the endpoint does not exist, and a chain with real collateral cannot have one', async () => {
    const without = await startExchange({ FAUCET: 'off' })
    for (const user of [await createUser(without.db, 'alice'), null]) {
      const { status, body } = await without.send(user, 'POST', '/v0/faucet', {})
      expect([status, body.details.code]).to.deep.equal([404, 'FAUCET_NOT_AVAILABLE'])
    }
    await without.stop()
    expect(() => readConfig(apiEnv('postgres://x/x', { CHAIN_ID: '4326' }))).to.throw(ConfigError, 'FAUCET')
    expect(readConfig(apiEnv('postgres://x/x', { CHAIN_ID: '4326', FAUCET: 'off' })).faucet).to.equal(false)
  })
})
