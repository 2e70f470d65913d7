/** What moves positions outside batches, from the chain into our books and back. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { Price } from '../../../domain/units.ts'
import { Backstop__factory } from '../../../typechain-types/factories/Backstop__factory.ts'
import { e18 } from '../../support/markets.ts'
import { expectBooks, expectConservation, expectPositions } from '../support/audit.ts'
import { useStage } from '../support/stage.ts'
import { catchUp, projectAll } from '../support/world.ts'

const FELL = e18('80')

describe('following what moves positions outside batches', () => {
  const stage = useStage()

  /** The market's backstop may take 1,000 of notional and has as much. */
  async function withBackstop(): Promise<{ address: string }> {
    const { world } = stage.scene
    const admin = await world.provider.getSigner(0)
    const { backstop } = world.shared
    await (await Backstop__factory.connect(backstop, admin).setBacked(world.spec.trader, true)).wait()
    await (await world.trader.connect(admin).setBackstop(backstop, e18('1000'))).wait()
    await world.deposit({ address: backstop } as never, '1000')
    return { address: backstop }
  }

  /** Half a minute later the price is 80: a long from 100 at 5x has nothing left. */
  async function afterTheFall() {
    const { world } = stage.scene
    const second = (await world.latestSecond()) + 30
    await world.rpc('evm_setNextBlockTimestamp', second)
    const observedAt = second * 1000
    const proof = await world.report(observedAt, FELL as Price)
    const { actionId } = await world.trader.clock()
    const trader = world.trader.connect(await world.provider.getSigner(1))
    return { trader, actionId: actionId + 1n, asOf: observedAt, report: { price: FELL, observedAt, proof } }
  }

  async function audit(backstop: { address: string }): Promise<void> {
    const { world, test, users } = stage.scene
    await projectAll(test)
    const everyone = [...users, backstop as never]
    await expectConservation(world, test.db, everyone)
    await expectPositions(world, test.db, everyone)
    await expectBooks(test.db)
  }

  const causes = async () => {
    const rows = await stage.scene.test.db.selectFrom('journal').select('row').orderBy('seq').execute()
    return rows.flatMap(({ row }) => (row.kind === 'positions_moved' ? [`${row.cause} ${row.rollback}`] : []))
  }

  it('given a takeover by the backstop, both positions and its balance move, and go back with their block', async () => {
    const { world, follower, alice } = stage.scene
    const backstop = await withBackstop()
    await stage.fundAndFollow()
    await stage.trade(stage.pair(500))
    const { trader, actionId, asOf, report } = await afterTheFall()
    await (await trader.inheritPosition(actionId, asOf, alice.address, report)).wait()
    await catchUp(follower)
    await audit(backstop)
    expect((await world.trader.position(backstop.address)).size).to.equal(500n)
    expect(await stage.mismatches()).to.deep.equal([])

    await world.rpc('anvil_reorg', 1, [])
    await catchUp(follower)
    await audit(backstop)
    expect((await world.trader.position(backstop.address)).size).to.equal(0n)
    expect(await causes()).to.deep.equal(['inherited false', 'inherited true'])
  })

  it('given a deleveraging, both sides close and the counterparty is paid', async () => {
    const { world, follower, alice, bob } = stage.scene
    const backstop = await withBackstop()
    await stage.fundAndFollow()
    await stage.trade(stage.pair(500))
    const { trader, actionId, asOf, report } = await afterTheFall()
    await (await trader.deleverage(actionId, asOf, alice.address, [bob.address], [400], report)).wait()
    await catchUp(follower)
    await audit(backstop)
    expect((await world.trader.position(bob.address)).size).to.equal(-100n)
    expect(await causes()).to.deep.equal(['deleveraged false'])
    expect(await stage.mismatches()).to.deep.equal([])
    await stage.expectSameAsFresh()
  })

  it('given a takeover that failed, nothing moves and nothing is wrong', async () => {
    const { follower, alice } = stage.scene
    await stage.fundAndFollow()
    await stage.trade(stage.pair(500))
    const { trader, actionId, asOf, report } = await afterTheFall()
    await (await trader.inheritPosition(actionId, asOf, alice.address, report)).wait()
    await catchUp(follower)
    await stage.audit()
    expect(await causes()).to.deep.equal([])
    expect(await stage.mismatches()).to.deep.equal([])
  })

  it('given the end of the market, deficits, covers and claims are followed to the last wei', async () => {
    const { world, follower, alice, bob } = stage.scene
    const backstop = await withBackstop()
    await stage.fundAndFollow()
    await stage.trade(stage.pair(500))
    const second = (await world.latestSecond()) + 60
    await world.rpc('evm_setNextBlockTimestamp', second)
    const proof = await world.report(second * 1000, e18('78') as Price)
    const trader = world.trader.connect(await world.provider.getSigner(1))
    await (await trader.poke({ price: e18('78'), observedAt: second * 1000, proof })).wait()
    await (await trader.requestFreeze()).wait()
    await world.rpc('evm_increaseTime', 86_402)
    await (await trader.freeze()).wait()
    await (await trader.listInsolvent([alice.address, bob.address])).wait()
    await world.deposit({ address: world.spec.trader }, '0.5')
    await (await trader.connect(bob).coverDeficit(e18('0.5'))).wait()
    await world.rpc('evm_increaseTime', 3 * 86_400 + 1)
    await (await trader.claim(bob.address)).wait()
    await catchUp(follower)
    await audit(backstop)
    expect(await causes()).to.deep.equal(['insolvent_listed false', 'deficit_covered false', 'claimed false'])
    expect(await stage.mismatches()).to.deep.equal([])
    await stage.expectSameAsFresh()
  })
})
