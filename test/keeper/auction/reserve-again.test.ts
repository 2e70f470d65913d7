/** Another highest taker rate: reservations are computed again in bounded turns, across restarts, before a batch applies it. */
import { expect } from 'chai'
import { sql } from 'kysely'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { listedTerms, NO_CHANGES } from '../../../domain/market/changes.ts'
import { listedParameters } from '../../../domain/market/parameters.ts'
import { toStoredTerms } from '../../../domain/market/stored-terms.ts'
import { reservable } from '../../../domain/orders/open-order.ts'
import { reservationPerStep } from '../../../domain/orders/reservation.ts'
import type { Millis, Rate } from '../../../domain/units.ts'
import { perpetual, rate } from '../../support/markets.ts'
import { withMirror } from '../../support/mirror.ts'
import { insertManyOrders } from '../support/many-orders.ts'
import { MarketFixture } from '../support/market-fixture.ts'
import { SteppedKeeper } from '../support/stepped-keeper.ts'

const COUNT = 2_600

describe('reservations at another highest taker rate', function () {
  this.timeout(120_000)
  let fixture: MarketFixture
  beforeEach(async () => {
    fixture = await MarketFixture.open(perpetual)
    await fixture.report(1000)
  })
  afterEach(() => fixture.close())

  const announce = async (takerFee: Rate, activeFrom: number) => {
    const parameters = { ...listedParameters(perpetual, null), takerFee }
    const terms = listedTerms(listedParameters(perpetual, null))
    const pending = { ...NO_CHANGES, parameters: { parameters, activeFrom: activeFrom as Millis } }
    await fixture.db
      .updateTable('markets')
      .set({ terms: JSON.stringify(toStoredTerms({ ...terms, pending })) })
      .execute()
  }
  const stored = () => fixture.db.selectFrom('markets').selectAll().executeTakeFirstOrThrow()
  /** Open orders that are not reserved at the rate. */
  const atOtherRate = async (takerFee: Rate): Promise<number> => {
    const spec = { ...perpetual, takerFee }
    const open = (await fixture.orders()).filter(({ status }) => status === 'OPEN')
    return open.filter(
      (order) => order.reserved !== reservationPerStep(spec, reservable(order)) * BigInt(order.openable),
    ).length
  }
  const expectSums = async () => {
    const { rows } = await sql<{ user_id: number }>`
      select a.user_id from accounts a
      where a.reserved <> coalesce((select sum(reserved + held) from orders o where o.user_id = a.user_id), 0)
    `.execute(fixture.db)
    expect(rows).to.deep.equal([])
  }
  const turn = async (keeper: SteppedKeeper) => {
    fixture.clock.value += 200
    await fixture.report(1000)
    return keeper.step()
  }

  it('when the rate rises, all orders are reserved at it, each step changes a bounded number, and none is matched before', async () => {
    const takerFee = rate('0.002')
    await insertManyOrders(fixture, { count: COUNT, perAccount: 500 })
    await announce(takerFee, fixture.clock.value + 1_000)
    const [alice, bob] = [await fixture.trader('alice'), await fixture.trader('bob')]
    const first = new SteppedKeeper(fixture)
    await turn(first)
    expect(await atOtherRate(perpetual.takerFee)).to.equal(0)
    fixture.clock.value += 1_000
    await fixture.place({ by: alice, side: 'LONG', steps: 10, limit: 1000 })
    await fixture.place({ by: bob, side: 'SHORT', steps: 10, limit: 1000 })

    // The first step of the sweep commits, the second one is lost with its owner.
    const { head: before } = await fixture.db
      .selectFrom('shards')
      .selectAll()
      .where('shard', '=', 'm1')
      .executeTakeFirstOrThrow()
    first.cutAt = 2
    expect(await turn(first)).to.equal(true)
    const { head } = await fixture.db
      .selectFrom('shards')
      .selectAll()
      .where('shard', '=', 'm1')
      .executeTakeFirstOrThrow()
    // A row that states how far the sweep is, and at most 1,000 changed reservations.
    expect(head - before).to.be.within(2, 1_001)
    const { reserved_fee, reserving_after, last_batch_id } = await stored()
    expect([reserved_fee, last_batch_id]).to.deep.equal([takerFee, 0])
    expect(reserving_after).to.be.a('number')
    expect(await atOtherRate(takerFee)).to.be.within(1, COUNT)
    await expectSums()

    const second = new SteppedKeeper(fixture)
    await turn(second)
    await turn(second)
    expect(await stored()).to.include({ reserved_fee: takerFee, reserving_after: null, last_batch_id: 1 })
    expect(await atOtherRate(takerFee)).to.equal(0)
    await expectSums()
    const batch = await fixture.db.selectFrom('batches').selectAll().executeTakeFirstOrThrow()
    expect(batch.taker_fee).to.equal(takerFee)
  })

  it('when an account cannot pay for the higher rate, its newest orders end with INSUFFICIENT_MARGIN', async () => {
    const poor = await fixture.trader('poor', '20.03')
    for (let count = 0; count < 2; count++)
      await fixture.place({ by: poor, side: 'LONG', steps: 50_000 / 100, limit: 990, leverage: 5 })
    const reserved = (await fixture.orders()).reduce((sum, order) => sum + order.reserved, 0n)
    await withMirror(fixture.db).updateTable('accounts').set({ free: reserved }).execute()
    await announce(rate('0.002'), fixture.clock.value + 100)
    const keeper = new SteppedKeeper(fixture)
    await turn(keeper)
    await turn(keeper)
    const [older, newer] = await fixture.orders()
    expect(newer).to.include({ status: 'CANCELLED', statusReason: 'INSUFFICIENT_MARGIN' })
    expect(older).to.include({ status: 'OPEN' })
    await expectSums()
  })
})
