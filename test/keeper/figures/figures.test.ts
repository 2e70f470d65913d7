/** The figures of a market's risk and funding, from the database to the metrics of its owner. */
import { expect } from 'chai'
import { sql } from 'kysely'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { createFigures } from '../../../keeper/figures/figures.ts'
import { createFigureStore } from '../../../keeper/figures/store.ts'
import { createMetrics } from '../../../keeper/metrics.ts'
import { e18, perpetual } from '../../support/markets.ts'
import { projectMirror } from '../../support/mirror.ts'
import { MarketFixture, SILENT_LOGGER } from '../support/market-fixture.ts'

const HOUR = 3_600_000
const INTERVAL_MS = 10_000

describe('the figures of a market', () => {
  let fixture: MarketFixture
  let metrics: ReturnType<typeof createMetrics>

  beforeEach(async () => {
    fixture = await MarketFixture.open(perpetual)
    metrics = createMetrics()
  })
  afterEach(() => fixture.close())

  const job = () => {
    const figures = createFigureStore(fixture.db, fixture.databaseTime)
    return createFigures({ figures, metrics, clock: fixture.clock, logger: SILENT_LOGGER }, perpetual)
  }

  /** Values by name, without the common prefix. */
  async function published(): Promise<Record<string, number>> {
    const all = await metrics.registry.getMetricsAsJSON()
    const own = all.filter(({ name }) => /^keeper_(liquidation|backstop|market_deficit|funding)/.test(name))
    return Object.fromEntries(
      own.flatMap(({ name, values }) =>
        values.map(({ value }) => [name.replace('keeper_', ''), Number(value)]),
      ),
    )
  }

  async function read(own = job()): Promise<typeof own> {
    own.poll()
    await own.settled()
    return own
  }

  it('when nothing runs and nothing is set, the counts are zero and the other figures are absent', async () => {
    await read()
    expect(await published()).to.deep.equal({
      ...{
        liquidations_running: 0,
        liquidations_failing: 0,
        liquidation_oldest_seconds: 0,
        market_deficit: 0,
      },
    })
  })

  it('when liquidations run, the backstop has a position and a rate is valid, all figures are published', async () => {
    const { db, clock } = fixture
    await fixture.report(1000)
    const [alice, bob, backstop] = [
      await fixture.trader('alice'),
      await fixture.trader('bob'),
      await fixture.trader('backstop', '70'),
    ]
    const address = backstop.wallet.address.toLowerCase()
    const ended = JSON.stringify({ deficit: `${e18('7')}` })
    await db
      .updateTable('markets')
      .set({ backstop: address, backstop_cap: e18('400'), ended })
      .execute()
    const own = { user_id: backstop.account, market_id: perpetual.marketId }
    await sql`
      insert into positions (user_id, market_id, size, leverage, matched_size, matched_leverage)
      values (${own.user_id}, ${own.market_id}, -400, 1, -1000, 1)
    `.execute(db)
    await projectMirror(db)
    for (const [number, { account }] of [alice, bob].entries()) {
      const running = {
        market_id: 1,
        user_id: account,
        number,
        stage: 'closing',
        start_size: 9,
        widenings: 0,
        retry_at: 0,
      }
      const rest = {
        attempts: number,
        seen_seq: 5,
        resting: 0,
        started_at: clock.value - 5_000 + number,
      }
      await sql`
        insert into liquidations select * from jsonb_populate_record(null::liquidations, ${JSON.stringify({ ...running, ...rest })}::jsonb)
      `.execute(db)
    }
    const valid = { valid_from: clock.value - 60_000, valid_until: clock.value - 60_000 + HOUR }
    // 0.0001 of a price of 100, for a step of 0.001.
    const rate = e18('0.00001')
    await db
      .insertInto('funding_states')
      .values({ market_id: 1, action_id: 1, as_of: valid.valid_from, funding_index: 0n, rate, ...valid })
      .execute()

    const running = await read()
    expect(await published()).to.deep.equal({
      ...{
        liquidations_running: 2,
        liquidations_failing: 1,
        liquidation_oldest_seconds: 5,
        market_deficit: 7,
      },
      ...{ backstop_use_ratio: 0.25, backstop_balance: 70, funding_rate: 0.0001 },
      funding_updated_timestamp_seconds: valid.valid_from / 1000,
      funding_valid_until_timestamp_seconds: valid.valid_until / 1000,
    })

    clock.value += HOUR
    await read(running)
    expect(await published()).to.not.have.any.keys('funding_rate')
    running.reset()
    expect(await published()).to.deep.equal({})
  })

  it('when the read model is being filled, the figures of the backstop are absent', async () => {
    const { db } = fixture
    const backstop = await fixture.trader('backstop', '70')
    await db
      .updateTable('markets')
      .set({ backstop: backstop.wallet.address.toLowerCase(), backstop_cap: e18('400') })
      .execute()
    await projectMirror(db)
    await sql`update read.places set fill_to = 5 where shard = 'm1'`.execute(db)
    const running = await read()
    expect(await published())
      .to.include.keys('market_deficit')
      .and.to.not.have.any.keys('backstop_balance')
    await sql`update read.places set fill_to = null`.execute(db)
    fixture.clock.value += INTERVAL_MS
    await read(running)
    expect(await published()).to.include({ backstop_balance: 70 })
  })

  it('when less than the interval has passed, nothing is read; a read from before a loss is not published', async () => {
    const own = await read()
    await fixture.db.updateTable('markets').set({ backstop: '0x01', backstop_cap: 1n }).execute()
    fixture.clock.value += INTERVAL_MS - 1
    await read(own)
    expect(await published()).to.not.have.any.keys('backstop_balance')
    fixture.clock.value += 1
    own.poll()
    own.reset()
    await own.settled()
    expect(await published()).to.deep.equal({})
  })
})
