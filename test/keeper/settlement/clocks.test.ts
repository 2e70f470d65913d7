/** A keeper whose system clock is wrong: batches follow the database's clock and block time. */
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import type { Fence } from '../../../db/fence.ts'
import type { Millis } from '../../../domain/units.ts'
import type { Chain } from '../../../keeper/ports.ts'
import { passTime } from '../../support/chain-faults.ts'
import { perpetual } from '../../support/markets.ts'
import { type ChainFixture, useChain } from '../support/chain-fixture.ts'
import { expectConsistent } from '../support/invariants.ts'
import type { Trader } from '../support/market-fixture.ts'
import { openTrading } from '../support/trading.ts'

const HOUR_MS = 3_600_000

describe('the times of a settlement', function () {
  this.timeout(60_000)
  const chain = useChain(perpetual)
  let fixture: ChainFixture
  let settling: Fence
  let alice: Trader
  let bob: Trader

  beforeEach(async () => {
    ;({ fixture, settling, alice, bob } = await openTrading(chain()))
  })

  afterEach(async () => {
    try {
      await expectConsistent(fixture)
      expect((await market()).mode).to.equal('open')
      expect(await fixture.rows('batch_voided')).to.have.length(0)
    } finally {
      await fixture.close()
    }
  })

  const market = () => fixture.db.selectFrom('markets').selectAll().executeTakeFirstOrThrow()
  async function cross(steps: number): Promise<void> {
    await fixture.place({ by: alice, side: 'LONG', steps, limit: 1000 })
    await fixture.place({ by: bob, side: 'SHORT', steps, limit: 1000 })
  }

  for (const step of [5_000, HOUR_MS, -5_000, -HOUR_MS]) {
    it(`when the system clock steps by ${step} ms, batches settle, live orders stay and last_as_of is not poisoned`, async () => {
      const expiration = Math.floor(Date.now() / 1000) + 600
      const resting = await fixture.place({ by: alice, side: 'LONG', steps: 7, limit: 990, expiration })
      let aheadMs = 0
      const clock = { now: () => (Date.now() + aheadMs) as Millis }
      const settlement = fixture.settlement({ clock })
      await settlement.start(settling)
      const auction = fixture.auction()
      await cross(10)
      await auction.run()
      aheadMs = step
      await fixture.report(1000, Date.now())
      await cross(15)
      await auction.run()
      await settlement.settleAll(settling)
      aheadMs = 0
      await cross(20)
      await auction.run()
      await settlement.settleAll(settling)
      expect(await fixture.position(alice)).to.equal(45n)
      expect((await fixture.orderOf(resting)).status).to.equal('OPEN')
      expect((await market()).last_as_of).to.be.closeTo(Date.now(), 3_000)
    })
  }

  it('when a batch is as of a time ahead of the chain, it is signed once block time allows it', async () => {
    await cross(10)
    await fixture.report(1000, Date.now() + 4_000)
    await fixture.auction({ aheadMs: 4_000 }).run()
    const settlement = fixture.settlement()
    await settlement.start(settling)
    await settlement.step(settling)
    expect(await fixture.transactions()).to.have.length(0)
    await passTime(chain(), 3_000)
    await settlement.settleAll(settling)
    expect((await fixture.actions()).map(({ status, nonce }) => [status, nonce])).to.deep.equal([
      ['MINED', 0],
    ])
  })

  it('when the chain refuses parts as ahead of block time, the same parts are signed again and no order is blamed', async () => {
    await cross(10)
    await fixture.report(1000, Date.now() + 4_000)
    const auction = fixture.auction({ aheadMs: 4_000 })
    await auction.run()
    await cross(15)
    await auction.run()
    let isWrong = true
    const wrongHead = (chain: Chain): Chain => ({
      ...chain,
      async head() {
        const head = await chain.head()
        return isWrong ? { ...head, time: (head.time + 4_000) as Millis } : head
      },
    })
    const settlement = fixture.settlement({ chain: wrongHead })
    await settlement.start(settling)
    await settlement.step(settling)
    expect((await fixture.transactions()).map(({ status }) => status)).to.deep.equal(['REVERTED', 'REVERTED'])
    isWrong = false
    await settlement.step(settling)
    expect((await fixture.actions()).map(({ status, nonce }) => [status, nonce])).to.deep.equal([
      ['QUEUED', null],
      ['QUEUED', null],
    ])
    expect((await fixture.transactions())[0]?.error).to.match(/^AsOfAhead\(/)
    await passTime(chain(), 3_000)
    await settlement.settleAll(settling)
    const actions = await fixture.actions()
    expect(actions.map(({ status, nonce, action_id }) => [status, nonce, action_id])).to.deep.equal([
      ['MINED', 2, 1],
      ['MINED', 3, 2],
    ])
    expect(await fixture.position(alice)).to.equal(25n)
  })
})
