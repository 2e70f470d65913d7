/** The forwarder's nonces and the lowest valid margin nonces follow their events on the chain, and leave it with them. */
import { expect } from 'chai'
import type { Wallet } from 'ethers'
import { describe, it } from 'mocha'
import { AccountManager__factory } from '../../../typechain-types/factories/AccountManager__factory.ts'
import { Forwarder__factory } from '../../../typechain-types/factories/Forwarder__factory.ts'
import { IsolatedTrader__factory } from '../../../typechain-types/factories/IsolatedTrader__factory.ts'
import { signForward } from '../../support/forward-request.ts'
import { addressOf, catchUp } from '../support/exchange-fixture.ts'
import { useFollowerFixture } from '../support/follower-fixture.ts'

const KEY = `0x${'4e'.repeat(20)}`

describe('following forwarded requests', () => {
  const fixture = useFollowerFixture()

  /** Alice's request, sent by another account. */
  async function execute(owner: Wallet, to: string, data: string, nonce: number): Promise<void> {
    const { exchange } = fixture.context
    const { forwarder } = exchange.shared
    const request = { from: owner.address, to, value: 0, gas: 100_000, nonce, deadline: 4_000_000_000, data }
    const signature = await signForward(owner, request, forwarder)
    const sender = Forwarder__factory.connect(forwarder, fixture.context.bob)
    await (await sender.execute({ ...request, signature })).wait()
  }

  const nonces = () =>
    fixture.context.test.db.selectFrom('forwarder_nonces').select(['signer', 'next_nonce']).execute()
  const floors = () =>
    fixture.context.test.db.selectFrom('margin_nonce_floors').select(['account', 'minimum']).execute()
  const journaled = async (kind: string) => {
    const rows = await fixture.context.test.db.selectFrom('journal').select('row').orderBy('seq').execute()
    return rows.flatMap(({ row }) => (row.kind === kind && 'rollback' in row ? [row.rollback] : []))
  }

  it('when requests are executed and the chain forks, each signer has the next nonce of the new chain', async () => {
    const { exchange, follower, alice } = fixture.context
    const { accountManager } = exchange.shared
    const register = AccountManager__factory.createInterface().encodeFunctionData('registerSessionKey', [
      KEY,
      3,
    ])
    await execute(alice, accountManager, register, 0)
    await catchUp(follower)
    await execute(alice, accountManager, register, 1)
    await catchUp(follower)
    expect(await nonces()).to.deep.equal([{ signer: addressOf(alice), next_nonce: 2 }])
    await exchange.rpc('anvil_reorg', 1, [])
    await catchUp(follower)
    expect(await nonces()).to.deep.equal([{ signer: addressOf(alice), next_nonce: 1 }])
    await exchange.rpc('anvil_reorg', 2, [])
    await catchUp(follower)
    expect(await nonces()).to.deep.equal([])
    expect(await journaled('forward_request_executed')).to.deep.equal([false, false, true, true])
    await fixture.expectSameAsFresh()
  })

  it('when margin nonces are invalidated, directly or by a request, the highest minimum counts until it leaves the chain', async () => {
    const { exchange, follower, alice } = fixture.context
    const market = IsolatedTrader__factory.connect(exchange.spec.trader, alice)
    await (await market.invalidateMarginNonces(5)).wait()
    const data = market.interface.encodeFunctionData('invalidateMarginNonces', [2n ** 64n])
    await execute(alice, exchange.spec.trader, data, 0)
    await catchUp(follower)
    expect(await floors()).to.deep.equal([{ account: addressOf(alice), minimum: 2n ** 64n }])
    await exchange.rpc('anvil_reorg', 1, [])
    await catchUp(follower)
    expect(await floors()).to.deep.equal([{ account: addressOf(alice), minimum: 5n }])
    await exchange.rpc('anvil_reorg', 2, [])
    await catchUp(follower)
    expect([await floors(), await nonces()]).to.deep.equal([[], []])
    await fixture.expectSameAsFresh()
  })
})
