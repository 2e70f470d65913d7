import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { readClock } from '../../../db/clock.ts'
import { fundingAfter } from '../../../domain/actions/queue.ts'
import { fundingIndexAt } from '../../../domain/prices/funding-state.ts'
import type { FundingIndex, HourlyFunding, Millis } from '../../../domain/units.ts'
import { e18, perpetual } from '../../support/markets.ts'
import { withMirror } from '../../support/mirror.ts'
import { createUser, type ExchangeFixture, startExchange, type User } from '../support/exchange-fixture.ts'

const HOUR = 3_600_000
/** A position of 0.5, bought at 100 with leverage 5. */
const STEPS = 500
const ENTRY = e18('50')
const FOLDED = e18('10')
/** The index after the mined action, and 1e9 wei per step and millisecond from it, then 3e9 from the queued one. */
const MINED = { index: e18('0.001'), rate: 10n ** 9n * BigInt(HOUR) }
const QUEUED_RATE = 3n * 10n ** 9n * BigInt(HOUR)

describe('funding in reads and in admission', () => {
  let exchange: ExchangeFixture
  let alice: User
  let start: number

  before(async () => {
    exchange = await startExchange()
    const { db } = exchange
    alice = await createUser(db, 'alice')
    start = (await readClock(db)) - 600_000
    const own = { user_id: alice.userId, market_id: perpetual.marketId }
    const mined = { size: STEPS, entry_notional: ENTRY, folded_margin: FOLDED, leverage: 5 }
    const matched = { matched_size: STEPS, matched_entry_notional: ENTRY, matched_folded_margin: FOLDED }
    await withMirror(db)
      .insertInto('positions')
      .values({ ...own, ...mined, ...matched, matched_leverage: 5 })
      .execute()
    await db
      .insertInto('read.positions')
      .values({ ...own, ...mined, updated_at: 0 })
      .execute()
    await exchange.project()
    const { marketId: market_id } = perpetual
    await db
      .insertInto('funding_states')
      .values({
        ...{ market_id, action_id: 1, as_of: start, funding_index: MINED.index, rate: MINED.rate },
        ...{ valid_from: start, valid_until: start + HOUR },
      })
      .execute()
  })
  after(() => exchange.stop())

  /** Queues a funding update as of that long after the mined action. */
  async function queueUpdate(afterMs: number, rate: bigint): Promise<void> {
    const payload = { rate: rate.toString(), valid_until: start + afterMs + HOUR }
    const values = {
      ...{ market_id: perpetual.marketId, queue_no: afterMs, kind: 'update_funding' as const },
      ...{ as_of: start + afterMs, status: 'QUEUED' as const, created_at: start },
    }
    await exchange.db
      .insertInto('actions')
      .values({ ...values, payload: JSON.stringify(payload) })
      .execute()
  }

  /** The margin of the position with the contract's arithmetic, if an action were executed at that time. */
  function marginAt(at: number, isQueued: boolean): bigint {
    const running = {
      ...{ rate: MINED.rate as HourlyFunding, validFrom: start as Millis },
      validUntil: (start + HOUR) as Millis,
    }
    const mined = { index: MINED.index as FundingIndex, asOf: start as Millis, running }
    const sets = {
      rate: QUEUED_RATE as HourlyFunding,
      validUntil: (start + 300_000 + HOUR) as Millis,
    }
    const state = fundingAfter(mined, isQueued ? [{ asOf: (start + 300_000) as Millis, sets }] : [])
    return FOLDED - BigInt(STEPS) * fundingIndexAt(state, at as Millis)
  }

  async function expectMargins(isQueued: boolean): Promise<void> {
    const asked = await readClock(exchange.db)
    const positions = await exchange.get(alice, `/v0/positions/by-user/${alice.userId}`)
    const balance = await exchange.get(alice, `/v0/balance/${alice.userId}/margin`)
    const placement = await exchange.place(alice, { price: '99', quantity: '0.01', leverage: 5 })
    // Half of the position remains, with half of its margin.
    const halved = await exchange.send(alice, 'POST', '/v0/orders/estimate', {
      ...{ market_id: perpetual.marketId, side: 'SHORT', order_type: 'LIMIT', price: '100' },
      ...{ sizing_intent: 'reduce_percentage', size: 50 },
    })
    const answered = await readClock(exchange.db)
    const balances = [balance.body.balance, placement.body.balance]
    const margins = [
      positions.body.positions[0].margin_e18_raw,
      ...balances.map(({ position_margin_e18_raw }) => position_margin_e18_raw),
      2n * BigInt(halved.body.estimate.position.margin_e18_raw),
    ]
    for (const margin of margins.map(BigInt)) {
      // The api's clock follows the database's within some milliseconds.
      expect(margin <= marginAt(asked - 50, isQueued), `${margin} is not too late`).to.equal(true)
      expect(margin >= marginAt(answered + 50, isQueued), `${margin} is not too early`).to.equal(true)
    }
  }

  it('when a rate runs, positions, balances, placements and estimates have funding accrued to their time', async () => {
    await expectMargins(false)
  })

  it('when an update is queued, they have the index after the queue, accrued at its rate', async () => {
    await queueUpdate(300_000, QUEUED_RATE)
    await expectMargins(true)
  })

  it('when queued funding leaves a position below the requirement, admission refuses to open', async () => {
    const terms = { price: '99', quantity: '0.01', leverage: 5 }
    expect((await exchange.place(alice, terms)).status).to.equal(200)
    // 1e12 wei per step and millisecond for more than 100 s: a payment of more than 50, of a margin of 10.
    await queueUpdate(400_000, 10n ** 12n * BigInt(HOUR))
    const { status, body } = await exchange.place(alice, terms)
    expect([status, body.details.code]).to.deep.equal([400, 'MARGIN_REQUIREMENT'])
  })
})
