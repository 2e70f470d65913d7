/** The write side follows a market's backstop and the bank's pause, and takes both back after a fork. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { Backstop__factory } from '../../../typechain-types/factories/Backstop__factory.ts'
import { MarginBank__factory } from '../../../typechain-types/factories/MarginBank__factory.ts'
import { e18 } from '../../support/markets.ts'
import { catchUp } from '../support/exchange-fixture.ts'
import { useFollowerFixture } from '../support/follower-fixture.ts'

describe('following backstops and pauses', () => {
  const fixture = useFollowerFixture()

  const backstopOf = () =>
    fixture.context.test.db
      .selectFrom('markets')
      .select(['backstop', 'backstop_cap'])
      .executeTakeFirstOrThrow()
  const pauseEnd = async () =>
    (
      await fixture.context.test.db
        .selectFrom('chain_progress')
        .select('bank_pause_ends_at')
        .executeTakeFirstOrThrow()
    ).bank_pause_ends_at

  it('when a market gets a backstop, it is stored with its cap, and a fork removes it', async () => {
    const { exchange, follower } = fixture.context
    const none = { backstop: null, backstop_cap: 0n }
    const admin = await exchange.provider.getSigner(0)
    const address = exchange.shared.backstop
    await (await Backstop__factory.connect(address, admin).setBacked(exchange.spec.trader, true)).wait()
    await catchUp(follower)
    expect(await backstopOf()).to.deep.equal(none)
    await (await exchange.trader.connect(admin).setBackstop(address, e18('1000'))).wait()
    await catchUp(follower)
    expect(await backstopOf()).to.deep.equal({ backstop: address.toLowerCase(), backstop_cap: e18('1000') })
    await exchange.rpc('anvil_reorg', 1, [])
    await catchUp(follower)
    expect(await backstopOf()).to.deep.equal(none)
    await fixture.expectSameAsFresh()
  })

  it('when the bank is paused and released, the end of the pause is stored, and a fork restores the one before', async () => {
    const { exchange, follower } = fixture.context
    const admin = await exchange.provider.getSigner(0)
    const bank = MarginBank__factory.connect(exchange.shared.marginBank, admin)
    const blockTime = async () => (await exchange.provider.getBlock('latest'))?.timestamp
    await (await bank.pause()).wait()
    await catchUp(follower)
    const planned = await pauseEnd()
    expect(planned).to.be.greaterThan((await blockTime()) ?? 0)
    await (await bank.unpause()).wait()
    await catchUp(follower)
    expect(await pauseEnd()).to.equal(await blockTime())
    await exchange.rpc('anvil_reorg', 1, [])
    await catchUp(follower)
    expect(await pauseEnd()).to.equal(planned)
  })
})
