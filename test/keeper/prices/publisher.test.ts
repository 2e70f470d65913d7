import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import type { Fence } from '../../../db/fence.ts'
import { LeaseLost } from '../../../db/fence.ts'
import { createLeases, seizeLease } from '../../../db/leases.ts'
import { statedPrice, stateFinalPrice } from '../../../db/market-endings.ts'
import { indexLease, latestReport, publishReports } from '../../../db/oracle-reports.ts'
import type { SourceAnswer } from '../../../domain/prices/aggregate.ts'
import { rangeOf } from '../../../domain/prices/feed.ts'
import type { Address, MarketId, Millis, Price } from '../../../domain/units.ts'
import { createOperatorSource } from '../../../keeper/adapters/sources/operator.ts'
import type { Publisher } from '../../../keeper/prices/publisher.ts'
import { binary, e18, perpetual } from '../../support/markets.ts'
import { listMarket } from '../../support/rows/markets.ts'
import { applySetting } from '../../support/settings.ts'
import { PublisherFixture, type TestSource } from './publisher-fixture.ts'

describe('the price publisher', () => {
  let fixture: PublisherFixture
  let publisher: Publisher
  let fence: Fence
  let a: TestSource
  let b: TestSource

  beforeEach(async () => {
    fixture = await PublisherFixture.open(perpetual)
    ;[a, b] = fixture.sources as [TestSource, TestSource]
    fence = await fixture.market.lease('prices')
    publisher = fixture.publisher()
    await publisher.start()
    await fixture.run(publisher, fence)
  })
  afterEach(() => fixture.close())

  const step = (steps = 1, passMs = 500) => fixture.run(publisher, fence, steps, passMs)

  it('when three sources agree, the report has their median, now, and two signatures in ascending order', async () => {
    a.price = e18('100.4')
    await step()
    const report = await fixture.latest()
    expect(report).to.include({ price: e18('100'), observedAt: fixture.market.clock.value })
    const signers = await fixture.signersOf()
    expect(signers).to.have.length(2)
    expect(signers).to.deep.equal([...signers].sort())
    for (const signer of signers) expect(fixture.keys.map(({ address }) => address)).to.include(signer)
  })

  it('when little changes, a report is published per interval, and at once when the price moves', async () => {
    const before = (await fixture.latest())?.observedAt
    await step(4, 100)
    expect((await fixture.latest())?.observedAt).to.equal(before)
    await step(1, 100)
    expect((await fixture.latest())?.observedAt).to.equal(fixture.market.clock.value)
    for (const source of fixture.sources) source.price = e18('100.1')
    await step(1, 100)
    expect(await fixture.latest()).to.include({ price: e18('100.1'), observedAt: fixture.market.clock.value })
  })

  it('when nothing is due, the store is asked every 300 ms, and at every step while another program publishes', async () => {
    const asked = async (steps: number): Promise<number> => {
      let count = 0
      for (let each = 0; each < steps; each++) {
        fixture.market.clock.value += 100
        if ((await publisher.step(fence)).mayHaveChanged) count += 1
      }
      return count
    }
    expect(await asked(50)).to.equal(20)
    await seizeLease(fixture.market.db, {
      name: indexLease(1),
      owner: 'tool',
      now: Date.now(),
      lifeMs: 60_000,
    })
    await asked(3)
    expect(await asked(10)).to.equal(10)
  })

  const faults: readonly (readonly [string, Partial<TestSource>, string])[] = [
    ['is stale', { age: 5_001 }, 'STALE'],
    ['is from the future', { age: -2_001 }, 'FUTURE'],
    ['is negative', { price: -e18('100') }, 'NOT_POSITIVE'],
    ['is zero', { price: 0n }, 'NOT_POSITIVE'],
    ['moves wildly', { price: e18('250') }, 'OUTLIER'],
    ['goes back in time', { age: 1_100 }, 'OUT_OF_ORDER'],
    ['is an error page', { fault: 'NOT_JSON' }, 'NO_READING'],
  ]
  for (const [what, spoil, reason] of faults) {
    it(`when the reading of one source ${what}, it is dropped as ${reason}; when that of two is, the market stops and resumes`, async () => {
      Object.assign(a, spoil)
      await step()
      expect(await fixture.state()).to.deep.include({
        status: 'live',
        price: e18('100'),
        dropped: { a: reason },
      })

      Object.assign(b, spoil)
      const last = await fixture.latest()
      await step()
      const state = await fixture.state()
      // Two sources that agree on a wild price are a majority: see the next test.
      if (reason === 'OUTLIER') return
      expect(state).to.include({
        reason: 'TOO_FEW_SOURCES',
        status: 'waiting',
        observed_at: last?.observedAt,
      })
      expect(state?.dropped).to.deep.equal({ a: reason, b: reason })

      for (const source of [a, b]) Object.assign(source, { age: 0, fault: null, price: e18('100') })
      await step()
      expect(await fixture.state()).to.include({ status: 'live', reason: null, price: e18('100') })
    })
  }

  it('when a source contradicts its own reading, the other price of the same time is dropped', async () => {
    await step()
    ;[a.age, a.price] = [500, e18('100.2')]
    await step()
    expect((await fixture.state())?.dropped).to.deep.equal({ a: 'CONTRADICTORY' })
  })

  it('when the sources disagree, the feed halts at once with a reason, and resumes when they agree', async () => {
    ;[a.price, b.price] = [e18('80'), e18('120')]
    await step()
    expect(await fixture.state()).to.include({ status: 'halted', reason: 'SOURCES_DISAGREE' })
    expect(await fixture.latest()).to.equal(null)
    ;[a.price, b.price] = [e18('100'), e18('100.5')]
    await step(1, 100)
    expect(await fixture.state()).to.include({ status: 'live', price: e18('100') })
  })

  it('when all sources jump farther than signers sign, the feed halts and resumes once the move is allowed', async () => {
    for (const source of fixture.sources) source.price = e18('130')
    await step()
    expect(await fixture.state()).to.include({ status: 'halted', reason: 'MOVE_TOO_LARGE' })
    // 10 % and 2 % per second: 30 % take ten seconds.
    let seconds = 0.5
    while ((await fixture.latest()) === null) {
      await step()
      seconds += 0.5
    }
    expect(seconds).to.equal(10)
    expect(await fixture.latest()).to.include({ price: e18('130') })
  })

  it('when a source throws, all other sources go on', async () => {
    a.answer = (): SourceAnswer => {
      throw new Error('broken')
    }
    await step()
    expect(await fixture.state()).to.deep.include({ status: 'live', dropped: { a: 'NO_READING' } })
  })

  it('when a market is not listed yet, its feed waits without disturbing other feeds', async () => {
    const [index] = fixture.feeds
    if (index === undefined) throw new Error('no feed')
    fixture.feeds = [{ ...index, marketId: 99 }, index]
    await step()
    expect(await fixture.latest()).to.include({ observedAt: fixture.market.clock.value })
  })

  it('when signers are too slow for many reports at once, fewer are asked for at once, so that each feed gets its report', async () => {
    const [index] = fixture.feeds
    if (index === undefined) throw new Error('no feed')
    const COUNT = 40
    for (let marketId = 2; marketId <= COUNT; marketId++) {
      const trader = `0x${marketId.toString(16).padStart(40, '0')}` as Address
      await listMarket(fixture.market.db, {
        ...perpetual,
        marketId: marketId as MarketId,
        symbol: `M${marketId}`,
        trader,
      })
    }
    const feedIdOf = (marketId: number) => `0x${marketId.toString(16).padStart(64, '0')}` as const
    fixture.feeds = Array.from({ length: COUNT }, (_, at) => ({
      ...index,
      marketId: at + 1,
      feedId: feedIdOf(at + 1),
    }))
    const never = new Promise<never>(() => {})
    fixture.signers = fixture.signers.map(({ sign, ...signer }) => ({
      ...signer,
      sign: (requests, deadlineMs) => (requests.length > 10 ? never : sign(requests, deadlineMs)),
    }))
    publisher = fixture.publisher()
    await publisher.start()
    fixture.market.clock.value += 5_000
    await step(24, 300)
    const rows = await fixture.market.db.selectFrom('oracle_reports').select('observed_at').execute()
    expect(rows.filter(({ observed_at }) => observed_at !== null)).to.have.length(COUNT)
  })

  it('when another program owns the lease of the index, it publishes, and the keeper continues afterwards', async () => {
    const name = indexLease(1)
    const lease = { name, owner: 'tool', now: Date.now(), lifeMs: 60_000 }
    await seizeLease(fixture.market.db, lease)
    const report = { price: e18('105') as Price, observedAt: (fixture.market.clock.value + 1) as Millis }
    const row = { marketId: 1, feed: 'index', readings: [], report: { ...report, signatures: '0x' } } as const
    await publishReports(fixture.market.db, [row])
    await step(3)
    expect(await fixture.latest()).to.include(report)
    await seizeLease(fixture.market.db, { ...lease, now: 0, lifeMs: 0 })
    await step(2)
    expect(await fixture.latest()).to.include({ price: e18('100'), observedAt: fixture.market.clock.value })
  })

  describe('after a crash, and with two publishers', () => {
    class Crash extends Error {}
    const crashAt = (wanted: string) => (point: string) => {
      if (point === wanted) throw new Crash(point)
    }

    for (const point of ['after-report-signing', 'after-report-storing']) {
      it(`when it is killed ${point.replaceAll('-', ' ')}, the next one publishes a newer report and none goes back`, async () => {
        const before = (await fixture.latest())?.observedAt ?? 0
        const dying = fixture.publisher(crashAt(point))
        await dying.start()
        await fixture.run(dying, fence).then(
          () => expect.fail('it must crash'),
          (error: unknown) => expect(error).to.be.instanceOf(Crash),
        )
        const stored = (await fixture.latest())?.observedAt ?? 0
        expect(stored > before).to.equal(point === 'after-report-storing')

        const next = fixture.publisher()
        await next.start()
        // The same millisecond: the signers have signed it once, and another price of it must not be published.
        for (const source of fixture.sources) source.price = e18('100.05')
        fixture.market.clock.value -= 500
        await fixture.run(next, fence, 3)
        expect((await fixture.latest())?.observedAt).to.be.greaterThan(stored)
        expect(await fixture.latest()).to.include({ price: e18('100.05') })
      })
    }

    it('when another publisher has taken the lease over, the reports of the first are refused', async () => {
      await createLeases(fixture.market.db, 'one', 60_000).release(fence)
      const second = await fixture.market.lease('prices', 'two')
      const successor = fixture.publisher()
      await successor.start()
      await fixture.run(successor, second)
      const report = await fixture.latest()
      await step().then(
        () => expect.fail('it must lose the lease'),
        (error: unknown) => expect(error).to.be.instanceOf(LeaseLost),
      )
      expect(await fixture.latest()).to.deep.equal(report)
    })

    it('when the clock of the next publisher is behind, its reports still go forward', async () => {
      const before = (await fixture.latest())?.observedAt ?? 0
      const behind = fixture.publisher()
      await behind.start()
      fixture.market.clock.value -= 1_400
      await fixture.run(behind, fence)
      const state = await fixture.state()
      expect(state?.observed_at).to.be.at.least(before)
      expect(state?.status).to.equal('live')
    })
  })
})

describe('the price publisher of a market with trading sessions', () => {
  const stock = { ...perpetual, fundingSession: true }
  /** Monday, 4 January 2027, 15:59:58 in New York. */
  const BEFORE_CLOSE = Date.UTC(2027, 0, 4, 20, 59, 58)

  it('when the session ends, the session feed shows 0 and the index repeats the last regular price until it opens', async () => {
    const fixture = await PublisherFixture.open(stock)
    try {
      await applySetting(fixture.market.engine, stock.marketId, { kind: 'calendar', calendar: 'NYSE' })
      const [index] = fixture.feeds
      if (index === undefined) throw new Error('no feed')
      const session = { ...index, feed: 'session', feedId: `0x${'0'.repeat(63)}2`, sources: [] } as const
      fixture.feeds = [index, session]
      fixture.rules = { ...fixture.rules, range: { low: 0n, high: 2n ** 127n }, move: null }
      const fence = await fixture.market.lease('prices')
      const publisher = fixture.publisher()
      const feeds = async () => {
        const rows = await fixture.market.db
          .selectFrom('oracle_reports')
          .selectAll()
          .orderBy('feed')
          .execute()
        return rows.map(({ feed, price, observed_at }) => [feed, price, observed_at])
      }
      const close = BEFORE_CLOSE + 2_000
      fixture.market.clock.value = BEFORE_CLOSE - 500
      await publisher.start()
      await fixture.run(publisher, fence)
      expect(await feeds()).to.deep.equal([
        ['index', e18('100'), BEFORE_CLOSE],
        ['session', BigInt(close), BEFORE_CLOSE],
      ])
      for (const source of fixture.sources) source.price = e18('90')
      fixture.market.clock.value = close - 500
      await fixture.run(publisher, fence)
      expect(await feeds()).to.deep.equal([
        ['index', e18('100'), close],
        ['session', 0n, close],
      ])
      // The next day, 9:30: readings from before the opening do not count.
      const open = Date.UTC(2027, 0, 5, 14, 30)
      fixture.market.clock.value = open - 500
      for (const source of fixture.sources) source.age = 1
      await fixture.run(publisher, fence)
      expect((await fixture.state())?.reason).to.equal('TOO_FEW_SOURCES')
      for (const source of fixture.sources) source.age = 0
      await fixture.run(publisher, fence)
      expect((await feeds())[0]).to.deep.equal(['index', e18('90'), open + 500])
    } finally {
      await fixture.close()
    }
  })
})

describe('the price publisher of a market that operators settle', () => {
  it('when an operator states a final price, it is reported from the close on, a correction at once, and nothing after the end', async () => {
    const fixture = await PublisherFixture.open(binary)
    const { db, clock } = fixture.market
    const { marketId } = binary
    const terms = {
      kind: 'operator',
      name: 'operator',
      maxAge: 5_000 as Millis,
      maxDeviation: 10_000n,
    } as const
    const source = createOperatorSource({ ...terms, pollMs: 20 }, () => statedPrice(db, marketId))
    fixture.rules = { ...fixture.rules, range: rangeOf(binary, 'final'), move: null }
    fixture.feeds = fixture.feeds.map((feed) => ({
      ...{ ...feed, marketId, feed: 'final', minimum: 1, sources: [source] },
      publication: { ...feed.publication, interval: 60_000 as Millis },
    }))
    const publisher = fixture.publisher()
    const fence = await fixture.market.lease('prices')
    await publisher.start()
    const latest = () => latestReport(db, { marketId, feed: 'final' })
    const state = (price: bigint) =>
      stateFinalPrice(db, marketId, { price: price as Price, by: 'ann', reason: 'outcome', at: clock.now() })
    const run = async (steps: number) => {
      await new Promise((resolve) => setTimeout(resolve, 80))
      await fixture.run(publisher, fence, steps, 1_000)
    }
    await state(0n)
    await run(2)
    expect(await latest(), 'before the close').to.equal(null)
    clock.value = binary.expiresAt
    await run(6)
    expect((await latest())?.price).to.equal(0n)
    const first = (await latest())?.observedAt as number
    await run(30)
    expect((await latest())?.observedAt, 'once a minute').to.equal(first)
    await state(binary.finalHigh)
    await run(1)
    expect((await latest())?.price).to.equal(binary.finalHigh)
    await db.updateTable('markets').set({ mode: 'settled' }).execute()
    // Markets are read every five seconds.
    await run(6)
    const last = (await latest())?.observedAt as number
    await run(70)
    expect((await latest())?.observedAt, 'after the end').to.equal(last)
    source.stop()
    await fixture.close()
  })
})
