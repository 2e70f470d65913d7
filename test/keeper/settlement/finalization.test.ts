/** A future ends at its final price: queued, mined, followed, rolled back by a fork and mined again. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { passTime } from '../../support/chain-faults.ts'
import { future, price } from '../../support/markets.ts'
import { ActionFixture } from '../support/action-fixture.ts'
import { ChainFixture, useChain } from '../support/chain-fixture.ts'
import { restoreChain, saveChain } from '../support/saved-chain.ts'

const DAY_MS = 86_400_000
const SETTLING = 3

describe('the finalization of a market', function () {
  this.timeout(60_000)
  const chain = useChain(future)

  it('when it is mined, the market is settled and its queue ends; a fork undoes that until it is mined again', async () => {
    const fixture = await ChainFixture.openOn(chain())
    const settling = await fixture.lease('settle:m2')
    const actions = new ActionFixture(fixture)
    const auction = fixture.auction()
    const settleAll = async () => {
      const settlement = fixture.settlement()
      await settlement.start(settling)
      await settlement.settleAll(settling)
    }
    const mode = async () =>
      (await fixture.db.selectFrom('markets').select('mode').executeTakeFirstOrThrow()).mode

    await actions.report(200)
    const [alice, bob] = [await fixture.depositor('alice'), await fixture.depositor('bob')]
    await fixture.place({ by: alice, side: 'LONG', steps: 20, limit: 200 })
    await fixture.place({ by: bob, side: 'SHORT', steps: 20, limit: 200 })
    await auction.run()
    await settleAll()
    const from = (await actions.headTime()) + DAY_MS + 5_000
    await (await fixture.trading().connect(chain().admin).scheduleMode(SETTLING, from)).wait()
    await passTime(chain(), DAY_MS + 10_000)
    fixture.clock.value = (await actions.headTime()) as number
    const report = await actions.reportFinal(price('123'))
    await passTime(chain(), DAY_MS + 10_000)
    fixture.clock.value = (await actions.headTime()) as number
    const saved = await saveChain(chain())

    await actions.finalize(report)
    await settleAll()
    expect(await mode()).to.equal('settled')
    expect((await fixture.actions()).at(-1)).to.include({
      ...{ kind: 'finalize_market', status: 'MINED', action_id: 2 },
    })
    expect((await fixture.rows('market_ended'))[0]).to.include({
      ...{ how: 'finalized', price: price('123').toString(), mode_before: 'open', rollback: false },
    })
    const behind = await actions.enqueue(({ asOf }) => ({
      ...{ kind: 'finalize_market', asOf, report: { price: price('1'), observedAt: asOf, signatures: '0x' } },
    }))
    expect(behind.ok ? null : behind.refusal.code).to.equal('MARKET_ENDED')
    expect(await auction.run()).to.equal(null)

    await restoreChain(chain(), saved)
    await chain().provider.send('evm_mine', [])
    await fixture.follow()
    expect([await mode(), (await fixture.actions()).at(-1)?.status]).to.deep.equal(['open', 'SUBMITTED'])
    await settleAll()
    expect([await mode(), (await fixture.actions()).at(-1)?.status]).to.deep.equal(['settled', 'MINED'])
    expect((await fixture.rows('market_ended')).map(({ rollback }) => rollback)).to.deep.equal([
      ...[false, true, false],
    ])
    await fixture.close()
  })
})
