/** Crashes between the reservation of an action's numbers, its signature and the storing of it; a signer that fails. */
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import type { Fence } from '../../../db/fence.ts'
import { passTime } from '../../support/chain-faults.ts'
import { perpetual } from '../../support/markets.ts'
import { ActionFixture } from '../support/action-fixture.ts'
import { type ChainFixture, useChain } from '../support/chain-fixture.ts'
import type { Auction } from '../support/engine-turns.ts'
import { expectConsistent } from '../support/invariants.ts'
import type { Trader } from '../support/market-fixture.ts'
import { openTrading } from '../support/trading.ts'

describe('an action between reservation and signature', function () {
  this.timeout(60_000)
  const chain = useChain(perpetual)
  let fixture: ChainFixture
  let actions: ActionFixture
  let auction: Auction
  let settling: Fence
  let alice: Trader
  let bob: Trader

  beforeEach(async () => {
    ;({ fixture, auction, settling, alice, bob } = await openTrading(chain()))
    actions = new ActionFixture(fixture)
  })

  afterEach(async () => {
    await expectConsistent(fixture)
    await fixture.close()
  })

  async function match(): Promise<void> {
    await fixture.place({ by: alice, side: 'LONG', steps: 20, limit: 1000 })
    await fixture.place({ by: bob, side: 'SHORT', steps: 20, limit: 1000 })
    await auction.run()
  }

  /** A keeper that ends at the point; nothing after it is done. */
  async function dieAt(point: string): Promise<void> {
    const dying = fixture.settlement({
      killPoint: (reached) => {
        if (reached === point) throw new Error(`crashed ${point}`)
      },
    })
    await dying.start(settling)
    await dying.step(settling).catch(() => {})
  }

  const settleAll = () => fixture.settle(settling)

  const numbers = async () =>
    (await fixture.actions()).map(({ kind, status, action_id, nonce }) => ({
      kind,
      status,
      action_id,
      nonce,
    }))
  const purposes = async () => (await fixture.transactions()).map(({ nonce, purpose }) => [nonce, purpose])

  it('when the crash came after the reservation, the action is signed with the same numbers', async () => {
    await match()
    await actions.updateFunding(1000)
    await dieAt('after-reserving')
    expect(await numbers()).to.deep.equal([
      { kind: 'settle_part', status: 'QUEUED', action_id: 1, nonce: 0 },
      { kind: 'update_funding', status: 'QUEUED', action_id: null, nonce: null },
    ])
    expect(await fixture.transactions()).to.deep.equal([])

    await settleAll()
    expect(await numbers()).to.deep.equal([
      { kind: 'settle_part', status: 'MINED', action_id: 1, nonce: 0 },
      { kind: 'update_funding', status: 'MINED', action_id: 2, nonce: 1 },
    ])
    expect(await purposes()).to.deep.equal([
      [0, 'settle_part'],
      [1, 'update_funding'],
    ])
  })

  it('when the crash came after the storing, the same bytes are sent', async () => {
    await actions.updateFunding(1000)
    await dieAt('after-signing')
    const [stored] = await fixture.transactions()
    await settleAll()
    expect((await fixture.transactions()).map(({ tx_hash }) => tx_hash)).to.deep.equal([stored?.tx_hash])
    expect((await numbers())[0]).to.include({ status: 'MINED', action_id: 1, nonce: 0 })
  })

  it('when the reserved action exceeds its lifetime, it ends, and a transaction of nothing uses its nonce', async () => {
    await match()
    await dieAt('after-reserving')
    await passTime(chain(), 15_000)
    await settleAll()
    expect((await numbers())[0]).to.include({ status: 'VOIDED', action_id: 1, nonce: 0 })
    fixture.clock.value += 15_000
    await actions.updateFunding(1000)
    await settleAll()
    expect((await numbers())[1]).to.include({ status: 'MINED', action_id: 1, nonce: 1 })
    expect(await purposes()).to.deep.equal([
      [0, 'nothing'],
      [1, 'update_funding'],
    ])
    expect((await fixture.orders()).map(({ status }) => status)).to.deep.equal(['OPEN', 'OPEN'])
  })

  it('when a single action is late, it is dropped, and the market goes on', async () => {
    await actions.updateFunding(1000)
    await passTime(chain(), 15_000)
    await settleAll()
    expect((await numbers())[0]).to.deep.equal({
      ...{ kind: 'update_funding', status: 'VOIDED', action_id: null, nonce: null },
    })
    expect((await fixture.rows('action_dropped'))[0]).to.include({ reason: 'not mined in time' })
  })
})
