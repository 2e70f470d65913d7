/** The trading session of the stock market while the exchange runs: funding, reports and reads follow the calendar. */
import { dirname, join } from 'node:path'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { putException } from '../../db/calendar-exceptions.ts'
import { plusDays } from '../../domain/market/civil-day.ts'
import type { Day, MarketId, Millis } from '../../domain/units.ts'
import { captureOps } from '../ops/support/captured-ops.ts'
import { waitFor } from '../support/patience.ts'
import { useStack } from './support/stack.ts'

const BTC = 1 as MarketId
const AAPL = 2 as MarketId
const DAY = 86_400_000
/** Several reports and checks of the funding job. */
const OBSERVED_MS = 5_000
const BUDGET = { budgetMs: 90_000 }

describe('trading sessions of a running exchange', function () {
  this.timeout(240_000)
  const test = useStack()
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies by name
  const get = async (path: string): Promise<any> =>
    (await fetch(`${test.stack.file.base_url}/v0${path}`)).json()
  const rates = async (marketId: number) => (await get(`/markets/${marketId}/funding-rates`)).funding_rates
  const sessionOf = async () => (await get(`/markets/${AAPL}`)).session
  const report = async (marketId: number, feed: 'index' | 'session') => {
    const { price, observed_at } = await test.stack.db
      .selectFrom('oracle_reports')
      .select(['price', 'observed_at'])
      .where('market_id', '=', marketId)
      .where('feed', '=', feed)
      .executeTakeFirstOrThrow()
    return { price: price as bigint, observed_at: observed_at as number }
  }
  const updates = () =>
    test.stack.db.selectFrom('actions').selectAll().where('market_id', '=', AAPL).execute()

  /** As an operator does. */
  async function assign(calendar: string): Promise<void> {
    const { symbol } = await get(`/markets/${AAPL}`)
    const on = ['--stack', join(dirname(test.stack.pricesFile), 'stack.json')]
    const args = ['calendar', 'assign', '--market', symbol, '--calendar', calendar, '--send', ...on]
    const { code, stdout, stderr } = await captureOps(args, {})
    expect(code, stdout + stderr).to.equal(0)
  }

  it('when the stock market is always open, both perpetuals have a funding rate within a minute', async () => {
    expect(await sessionOf()).to.equal('regular')
    for (const marketId of [BTC, AAPL]) {
      const found = await waitFor(
        () => rates(marketId),
        (all) => all.length > 0,
        BUDGET,
      )
      expect(found, `market ${marketId}`).to.not.deep.equal([])
    }
  })

  it('when the session is closed while it runs, prices repeat, the session feed is 0 and no funding update is queued', async () => {
    const { db } = test.stack
    const today = Math.floor(Date.now() / DAY) as Day
    for (let offset = -1; offset <= 3; offset++)
      await putException(
        db,
        { day: plusDays(today, offset), hours: null, reason: 'test' },
        Date.now() as Millis,
      )
    await assign('NYSE')
    await waitFor(sessionOf, (session) => session === 'closed', BUDGET)
    await waitFor(
      () => report(AAPL, 'session'),
      ({ price }) => price === 0n,
      BUDGET,
    )

    const before = { stock: await report(AAPL, 'index'), crypto: await report(BTC, 'index') }
    const queued = await updates()
    await new Promise((resolve) => setTimeout(resolve, OBSERVED_MS))
    const stock = await report(AAPL, 'index')
    expect(stock.price).to.equal(before.stock.price)
    expect(stock.observed_at).to.be.greaterThan(before.stock.observed_at + OBSERVED_MS / 2)
    expect((await report(BTC, 'index')).price).to.not.equal(before.crypto.price)
    const session = await report(AAPL, 'session')
    expect(session.price).to.equal(0n)
    expect(session.observed_at).to.be.greaterThan(Date.now() - 10_000)
    expect(await updates()).to.have.length(queued.length)
  })

  it('when the session opens again, prices move and the session feed is the end of the session', async () => {
    const repeated = await report(AAPL, 'index')
    await assign('ALWAYS_OPEN')
    await waitFor(sessionOf, (session) => session === 'regular', BUDGET)
    await waitFor(
      () => report(AAPL, 'session'),
      ({ price }) => price > BigInt(Date.now()),
      BUDGET,
    )
    await waitFor(
      () => report(AAPL, 'index'),
      ({ price }) => price !== repeated.price,
      BUDGET,
    )
  })
})
