/** The ranking of a market, stored under its lease. */
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import type { Fence } from '../../../db/fence.ts'
import type { Position } from '../../../domain/positions/position.ts'
import type { Quote, Steps } from '../../../domain/units.ts'
import { createRanks } from '../../../keeper/ranks/ranks.ts'
import { createRankStore } from '../../../keeper/ranks/store.ts'
import { e18, perpetual } from '../../support/markets.ts'
import { MarketFixture, SILENT_LOGGER } from '../support/market-fixture.ts'

const INTERVAL_MS = 10_000

describe('the ranks of a market', () => {
  let fixture: MarketFixture
  let fence: Fence
  let positions: readonly Position[]

  beforeEach(async () => {
    fixture = await MarketFixture.open(perpetual)
    fence = await fixture.lease('readers:m1')
    positions = []
  })
  afterEach(() => fixture.close())

  const job = () => {
    const ranks = { ...createRankStore(fixture.db, fixture.databaseTime), positions: async () => positions }
    return createRanks({ ranks, clock: fixture.clock, logger: SILENT_LOGGER }, perpetual)
  }
  const load = (...loaded: readonly Position[]): void => {
    positions = loaded
  }
  const stored = () => fixture.db.selectFrom('deleveraging_ranks').selectAll().execute()

  /** At 100 a long of 1 from 50 with a margin of 10: profit 50 of 50, notional 100 of equity 60. */
  const long: Position = {
    ...{
      size: 1_000 as Steps,
      entryNotional: e18('50') as Quote,
      foldedMargin: e18('10') as Quote,
      leverage: 5,
    },
  }

  it('when a market has a price and positions, its ranks are stored with what they were computed at', async () => {
    await fixture.report(1000)
    load(long, { ...long, size: 0 as Steps })
    const ranks = job()
    ranks.poll(fence)
    await ranks.settled()
    const score = (e18('100') * e18('1')) / e18('60')
    expect(await stored()).to.deep.equal([
      {
        ...{ market_id: 1, oracle_price: e18('100'), funding_index: 0n, ranked_at: fixture.clock.value },
        ...{ longs: Array(4).fill(`${score}`), shorts: [] },
      },
    ])
  })

  it('when less than the interval has passed, nothing is ranked; after it, the row is replaced', async () => {
    await fixture.report(1000)
    load(long)
    const ranks = job()
    ranks.poll(fence)
    await ranks.settled()
    const first = await stored()
    load()
    fixture.clock.value += INTERVAL_MS - 1
    ranks.poll(fence)
    await ranks.settled()
    expect(await stored()).to.deep.equal(first)
    fixture.clock.value += 1
    ranks.poll(fence)
    await ranks.settled()
    expect((await stored()).map(({ longs }) => longs)).to.deep.equal([[]])
  })

  it('when there is no price, nothing is stored', async () => {
    load(long)
    const ranks = job()
    ranks.poll(fence)
    await ranks.settled()
    expect(await stored()).to.deep.equal([])
  })

  it('when another process owns the market, its ranks are not replaced', async () => {
    await fixture.report(1000)
    load(long)
    const ranks = job()
    ranks.poll({ ...fence, token: fence.token - 1 })
    await ranks.settled()
    expect(await stored()).to.deep.equal([])
  })
})
