/** Inheritance, deleveraging and wind-down change positions outside batches: applied to the write side and rolled back. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { Price } from '../../../domain/units.ts'
import { Backstop__factory } from '../../../typechain-types/factories/Backstop__factory.ts'
import { e18 } from '../../support/markets.ts'
import { expectBooks, expectConservation, expectPositions } from '../support/audit.ts'
import { catchUp, projectAll } from '../support/exchange-fixture.ts'
import { useFollowerFixture } from '../support/follower-fixture.ts'

const DROPPED = e18('80')

describe('changes of positions outside batches', () => {
  const fixture = useFollowerFixture()

  /** The market's backstop may take over a notional of 1,000 and has that balance. */
  async function withBackstop(): Promise<{ address: string }> {
    const { exchange } = fixture.context
    const admin = await exchange.provider.getSigner(0)
    const { backstop } = exchange.shared
    await (await Backstop__factory.connect(backstop, admin).setBacked(exchange.spec.trader, true)).wait()
    await (await exchange.trader.connect(admin).setBackstop(backstop, e18('1000'))).wait()
    await exchange.deposit({ address: backstop } as never, '1000')
    return { address: backstop }
  }

  /** 30 s later the price is 80: a long from 100 at 5x has no equity left. */
  async function afterPriceDrop() {
    const { exchange } = fixture.context
    const second = (await exchange.latestSecond()) + 30
    await exchange.rpc('evm_setNextBlockTimestamp', second)
    const observedAt = second * 1000
    const proof = await exchange.report(observedAt, DROPPED as Price)
    const { actionId } = await exchange.trader.clock()
    const trader = exchange.trader.connect(await exchange.provider.getSigner(1))
    return {
      trader,
      actionId: actionId + 1n,
      asOf: observedAt,
      report: { price: DROPPED, observedAt, proof },
    }
  }

  async function audit(backstop: { address: string }): Promise<void> {
    const { exchange, test, users } = fixture.context
    await projectAll(test)
    const accounts = [...users, backstop as never]
    await expectConservation(exchange, test.db, accounts)
    await expectPositions(exchange, test.db, accounts)
    await expectBooks(test.db)
  }

  const causes = async () => {
    const rows = await fixture.context.test.db.selectFrom('journal').select('row').orderBy('seq').execute()
    return rows.flatMap(({ row }) => (row.kind === 'positions_moved' ? [`${row.cause} ${row.rollback}`] : []))
  }

  it('when the backstop inherits a position, both positions and its balance change, and a reorg rolls them back', async () => {
    const { exchange, follower, alice } = fixture.context
    const backstop = await withBackstop()
    await fixture.fundAndFollow()
    await fixture.trade(fixture.pair(500))
    const { trader, actionId, asOf, report } = await afterPriceDrop()
    await (await trader.inheritPosition(actionId, asOf, alice.address, report)).wait()
    await catchUp(follower)
    await audit(backstop)
    expect((await exchange.trader.position(backstop.address)).size).to.equal(500n)
    expect(await fixture.mismatches()).to.deep.equal([])

    await exchange.rpc('anvil_reorg', 1, [])
    await catchUp(follower)
    await audit(backstop)
    expect((await exchange.trader.position(backstop.address)).size).to.equal(0n)
    expect(await causes()).to.deep.equal(['inherited false', 'inherited true'])
  })

  it('when a position is deleveraged, both sides close and the counterparty is paid', async () => {
    const { exchange, follower, alice, bob } = fixture.context
    const backstop = await withBackstop()
    await fixture.fundAndFollow()
    await fixture.trade(fixture.pair(500))
    const { trader, actionId, asOf, report } = await afterPriceDrop()
    await (await trader.deleverage(actionId, asOf, alice.address, [bob.address], [400], report)).wait()
    await catchUp(follower)
    await audit(backstop)
    expect((await exchange.trader.position(bob.address)).size).to.equal(-100n)
    expect(await causes()).to.deep.equal(['deleveraged false'])
    expect(await fixture.mismatches()).to.deep.equal([])
    await fixture.expectSameAsFresh()
  })

  it('when an inheritance fails, no position changes and no mismatch is recorded', async () => {
    const { follower, alice } = fixture.context
    await fixture.fundAndFollow()
    await fixture.trade(fixture.pair(500))
    const { trader, actionId, asOf, report } = await afterPriceDrop()
    await (await trader.inheritPosition(actionId, asOf, alice.address, report)).wait()
    await catchUp(follower)
    await fixture.audit()
    expect(await causes()).to.deep.equal([])
    expect(await fixture.mismatches()).to.deep.equal([])
  })

  it('when the market winds down, deficits, covers and claims are applied to the wei', async () => {
    const { exchange, follower, alice, bob } = fixture.context
    const backstop = await withBackstop()
    await fixture.fundAndFollow()
    await fixture.trade(fixture.pair(500))
    const second = (await exchange.latestSecond()) + 60
    await exchange.rpc('evm_setNextBlockTimestamp', second)
    const proof = await exchange.report(second * 1000, e18('78') as Price)
    const trader = exchange.trader.connect(await exchange.provider.getSigner(1))
    await (await trader.poke({ price: e18('78'), observedAt: second * 1000, proof })).wait()
    await (await trader.requestFreeze()).wait()
    await exchange.rpc('evm_increaseTime', 86_402)
    await (await trader.freeze()).wait()
    await (await trader.reportInsolvent([alice.address, bob.address])).wait()
    await exchange.deposit({ address: exchange.spec.trader }, '0.5')
    await (await trader.connect(bob).coverDeficit(e18('0.5'))).wait()
    await exchange.rpc('evm_increaseTime', 3 * 86_400 + 1)
    await (await trader.claim(bob.address)).wait()
    await catchUp(follower)
    await audit(backstop)
    expect(await causes()).to.deep.equal([
      'insolvency_reported false',
      'deficit_covered false',
      'claimed false',
    ])
    expect(await fixture.mismatches()).to.deep.equal([])
    await fixture.expectSameAsFresh()
  })
})
