import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { perpetual } from '../../support/markets.ts'
import { createAuction, createMarketMemory, createMarks } from '../support/engine-turns.ts'
import { MarketFixture, RULES, type Trader } from '../support/market-fixture.ts'

describe('an auction that would change nothing', () => {
  let fixture: MarketFixture
  let alice: Trader
  let bob: Trader

  beforeEach(async () => {
    fixture = await MarketFixture.open(perpetual)
    await fixture.report(1000)
    alice = await fixture.trader('alice')
    bob = await fixture.trader('bob')
  })

  afterEach(() => fixture.close())

  const newMemory = () => createMarketMemory({ ...RULES, kind: 'perpetual' })

  it('when an order arrives with a row that the marks have read, it is not skipped', async () => {
    const memory = newMemory()
    const ports = fixture.turnPorts()
    const [own, marks] = [createAuction(ports, perpetual, memory), createMarks(ports, perpetual, memory)]
    await own.run()
    await fixture.place({ by: alice, side: 'LONG', steps: 50, limit: 990 })
    await marks.update()
    const { seq } = fixture.engine.state.heads.get(perpetual.marketId) as { seq: number }
    expect(memory.turn.standingSeq).to.be.below(seq)
    await own.run()
    expect(memory.turn.standingSeq).to.equal(seq)
  })

  it('when the market has closed, its open and waiting orders end with MARKET_CLOSED, and nothing is left to do', async () => {
    const own = createAuction(fixture.turnPorts(), perpetual, newMemory())
    const open = await fixture.place({ by: alice, side: 'LONG', steps: 50, limit: 990 })
    const stop = await fixture.place({ by: bob, side: 'SHORT', steps: 5, type: 'STOP_MARKET', trigger: 900 })
    await own.run()
    await fixture.db.updateTable('markets').set({ settling_at: fixture.clock.value }).execute()
    for (let turn = 0; turn < 4; turn++) await own.run()
    for (const order of [open, stop])
      expect(await fixture.orderOf(order)).to.include({
        ...{ status: 'CANCELLED', statusReason: 'MARKET_CLOSED', reserved: 0n },
      })
    const ended = await fixture.rows('order_ended')
    expect(ended.map(({ reason }) => reason)).to.deep.equal(['MARKET_CLOSED', 'MARKET_CLOSED'])
  })
})
