/** The history of equity over generated histories with funding, forks and withdrawals that pay losses, from a real read model. */
import { expect } from 'chai'
import fc from 'fast-check'
import { sql } from 'kysely'
import { after, before, describe, it } from 'mocha'
import {
  type EquityRange,
  equityPage,
  equitySeries,
  type StartedPoint,
} from '../../../api/account-equity/series.ts'
import { INTERVALS } from '../../../domain/market-data/interval.ts'
import type { Millis } from '../../../domain/units.ts'
import { projectAll, registerShards } from '../../../indexer/project/project-shards.ts'
import { rebuild } from '../../../indexer/project/rebuild.ts'
import { cashFlows } from '../../../indexer/project/tables/cash-flows.ts'
import { fundingRates } from '../../../indexer/project/tables/funding-rates.ts'
import { positionHistory } from '../../../indexer/project/tables/position-states.ts'
import { priceCandles } from '../../../indexer/project/tables/price-candles.ts'
import { freshDatabase, type TestDatabase } from '../../indexer/support/database.ts'
import { appendToJournal, clearJournal } from '../../indexer/support/read-model.ts'
import { listMarket } from '../../support/rows/markets.ts'
import { anyEquityModel, EQUITY_MARKETS, EQUITY_USERS, type EquityModel } from './equity-model.ts'

const SPECS = new Map(EQUITY_MARKETS.map((spec) => [spec.marketId as number, spec]))
const PROJECTIONS = [positionHistory, cashFlows, fundingRates, priceCandles]
const CHUNK = { limit: 7, killPoint: () => {}, projections: PROJECTIONS }

const NAMES = [
  'equity',
  'balance',
  'deposits',
  'withdrawals',
  'realizedPnl',
  'fees',
  'funding',
  'unrealizedPnl',
] as const

describe('the equity of an account over time', function () {
  this.timeout(180_000)
  let test: TestDatabase
  before(async () => {
    test = await freshDatabase()
    for (const spec of EQUITY_MARKETS) await listMarket(test.db, spec)
  })
  after(() => test.close())

  async function project(model: EquityModel): Promise<void> {
    await clearJournal(test.db)
    await sql`delete from funding_states`.execute(test.db)
    for (const shard of ['accounts', 'm1', 'm2'])
      await appendToJournal(
        test.db,
        shard,
        model.entries.filter((entry) => entry.shard === shard).map(({ row }) => row),
      )
    for (const { marketId } of EQUITY_MARKETS) {
      const { index, asOf, running } = model.funding(marketId)
      await sql`
        insert into funding_states (market_id, action_id, as_of, funding_index, rate, valid_from, valid_until)
        values (${marketId}, 1, ${asOf}, ${index}, ${running.rate}, ${running.validFrom}, ${running.validUntil})
      `.execute(test.db)
    }
    await registerShards(test.db, PROJECTIONS)
    await projectAll(test.db, CHUNK)
  }

  /** All pages, oldest point first. */
  async function seriesOf(
    userId: number,
    interval: '1h' | '1d',
    { now, limit, marketId }: { readonly now: Millis; readonly limit: number; readonly marketId?: number },
  ): Promise<StartedPoint[]> {
    const points: StartedPoint[] = []
    const span = INTERVALS[interval]
    let to = (now - (now % span) + span) as Millis
    for (;;) {
      const range: EquityRange = { interval, from: null, to, limit, now }
      const page = await equityPage(test.db, { userId, marketId }, range)
      points.unshift(...equitySeries(page, SPECS))
      if (!page.hasMore) return points
      to = points[0]?.start as Millis
    }
  }

  it('when any history is read in any pages, each point is what the account had at that time, and its parts add up', async () => {
    await fc.assert(
      fc.asyncProperty(
        anyEquityModel,
        fc.constantFrom(1, 5, 200),
        fc.constantFrom('1h' as const, '1d' as const),
        async (model, limit, interval) => {
          await project(model)
          const options = { now: model.now, limit }
          for (const user of EQUITY_USERS) {
            const points = await seriesOf(user, interval, options)
            let [equity, unrealized] = [0n, 0n]
            for (const [at, point] of points.entries()) {
              if (at > 0) expect(point.start - (points[at - 1]?.start ?? 0)).to.equal(INTERVALS[interval])
              const { balance, unrealizedPnl } = model.at(user, point.start + INTERVALS[interval])
              expect(point.balance, `balance of ${user} at ${point.start}`).to.equal(balance)
              expect(point.unrealizedPnl, `profit of ${user} at ${point.start}`).to.equal(unrealizedPnl)
              expect(point.equity - equity).to.equal(
                point.deposits -
                  point.withdrawals +
                  point.realizedPnl -
                  point.fees +
                  point.funding +
                  (point.unrealizedPnl - unrealized),
              )
              ;[equity, unrealized] = [point.equity, point.unrealizedPnl]
            }
            const last = model.at(user, model.now)
            expect(equity).to.equal(last.balance + last.unrealizedPnl)
          }
        },
      ),
      { numRuns: 60 },
    )
  })

  it('when it is read by market, the markets and the cash add up to the account', async () => {
    await fc.assert(
      fc.asyncProperty(anyEquityModel, async (model) => {
        await project(model)
        const options = { now: model.now, limit: 50 }
        for (const user of EQUITY_USERS) {
          const whole = await seriesOf(user, '1d', options)
          const parts = await Promise.all(
            EQUITY_MARKETS.map(({ marketId }) => seriesOf(user, '1d', { ...options, marketId })),
          )
          let cash = 0n
          for (const point of whole) {
            cash += point.deposits - point.withdrawals
            const own = parts.flatMap((points) => points.filter(({ start }) => start === point.start))
            const sum = (name: (typeof NAMES)[number]) => own.reduce((total, each) => total + each[name], 0n)
            expect(sum('equity') + cash).to.equal(point.equity)
            for (const name of ['realizedPnl', 'fees', 'funding', 'unrealizedPnl'] as const)
              expect(sum(name), name).to.equal(point[name])
            expect(sum('deposits') + sum('withdrawals')).to.equal(0n)
          }
        }
      }),
      { numRuns: 20 },
    )
  })

  it('when the read model is rebuilt, the history is the same', async () => {
    await fc.assert(
      fc.asyncProperty(anyEquityModel, async (model) => {
        await project(model)
        const read = () =>
          Promise.all(EQUITY_USERS.map((user) => seriesOf(user, '1h', { now: model.now, limit: 100 })))
        const live = await read()
        await rebuild(test.db, { ...CHUNK, limit: 1_000 })
        expect(await read()).to.deep.equal(live)
      }),
      { numRuns: 10 },
    )
  })
})
