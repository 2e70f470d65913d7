/** Session keys follow their events on the chain, and orders end with the approval of the key that signed them. */
import { expect } from 'chai'
import { Wallet } from 'ethers'
import { describe, it } from 'mocha'
import { marketShard } from '../../../domain/journal/journal-row.ts'
import { toStoredSpec } from '../../../domain/market/stored-spec.ts'
import type { MarketId } from '../../../domain/units.ts'
import { AccountManager__factory } from '../../../typechain-types/factories/AccountManager__factory.ts'
import { addressOf, catchUp } from '../support/exchange-fixture.ts'
import { useFollowerFixture } from '../support/follower-fixture.ts'
import { matchOrder } from '../support/matched-part.ts'
import { acceptOrder, orderOf } from '../support/resting-order.ts'

const MONTH = 30 * 24 * 3600

describe('following session keys', () => {
  const fixture = useFollowerFixture()

  const key = Wallet.createRandom()
  const managerOf = (owner: Wallet) =>
    AccountManager__factory.connect(fixture.context.exchange.shared.accountManager, owner)
  const register = async (owner: Wallet, permissions = 3) =>
    (await managerOf(owner).registerSessionKey(key.address, permissions)).wait()
  const revoke = async (owner: Wallet) => (await managerOf(owner).revokeSessionKey(key.address)).wait()
  const keys = () => fixture.context.test.db.selectFrom('session_keys').selectAll().execute()

  it('when a key is registered, it stores the permissions and the expiry', async () => {
    const { follower, alice } = fixture.context
    await register(alice, 1)
    await catchUp(follower)
    const [stored] = await keys()
    expect(stored).to.deep.include({
      owner: addressOf(alice),
      key: addressOf(key),
      permissions: 1,
      revoked_at: null,
    })
    expect((stored?.expires_at ?? 0) - (stored?.registered_at ?? 0)).to.equal(MONTH)
  })

  it('when a revoked key is registered again, it is approved with the first expiry', async () => {
    const { exchange, follower, alice } = fixture.context
    await register(alice, 1)
    await revoke(alice)
    await catchUp(follower)
    const [revoked] = await keys()
    expect(revoked?.revoked_at).to.be.a('number')
    await exchange.rpc('evm_increaseTime', 1000)
    await register(alice, 3)
    await catchUp(follower)
    const [again] = await keys()
    expect(again).to.deep.include({ permissions: 3, revoked_at: null, expires_at: revoked?.expires_at })
  })

  it('when a key is revoked, it cancels the orders that the key signed for that owner in every market, and no others', async () => {
    const { exchange, test, follower, alice, bob } = fixture.context
    await fixture.fundAndFollow()
    const other = {
      ...exchange.spec,
      marketId: 2 as MarketId,
      symbol: 'OTHER',
      trader: addressOf(Wallet.createRandom()),
    }
    await test.engine.write([
      { shard: marketShard(2), row: { kind: 'market_listed', spec: toStoredSpec(other) } },
    ])
    await register(alice)
    await catchUp(follower)
    const signer = addressOf(key)
    const place = (marketId: number, by: Wallet, changes = {}) =>
      acceptOrder(test.engine, marketId, addressOf(by), changes)
    const ended = [
      await place(1, alice, { signer }),
      await place(2, alice, { signer, type: 'STOP_MARKET', trigger: 1_100, price: 0 }),
    ]
    const unaffected = [await place(1, alice), await place(1, bob, { signer })]
    await revoke(alice)
    await catchUp(follower)
    for (const id of ended) {
      const order = await orderOf(test.db, id)
      expect(order).to.deep.include({ status: 'CANCELLED', status_reason: 'SIGNER_REVOKED', reserved: 0n })
    }
    for (const id of unaffected) expect((await orderOf(test.db, id)).status).to.equal('OPEN')
    await fixture.audit()
  })

  it('when a key is revoked while its order settles, the order waits for its settlement', async () => {
    const { test, follower, alice } = fixture.context
    await fixture.fundAndFollow()
    await register(alice)
    await catchUp(follower)
    const id = await acceptOrder(test.engine, 1, addressOf(alice), { signer: addressOf(key) })
    await matchOrder(test.engine, id, 4)
    await revoke(alice)
    await catchUp(follower)
    const order = await orderOf(test.db, id)
    expect(order).to.deep.include({
      status: 'CANCEL_PENDING_FINALIZE',
      closing_reason: 'SIGNER_REVOKED',
      reserved: 0n,
    })
  })

  it('when a reorg removes registrations and revocations, the keys have their state on the new chain', async () => {
    const { exchange, test, follower, alice, bob } = fixture.context
    await fixture.fundAndFollow()
    await register(alice, 1)
    await catchUp(follower)
    const [before] = await keys()
    await register(alice, 3)
    await revoke(alice)
    await register(bob)
    await catchUp(follower)
    expect(await keys()).to.have.length(2)
    const id = await acceptOrder(test.engine, 1, addressOf(bob), { signer: addressOf(key) })
    await exchange.rpc('anvil_reorg', 3, [])
    await catchUp(follower)
    const [after, ...others] = await keys()
    expect(others).to.deep.equal([])
    const { block: _block, ...state } = before as NonNullable<typeof before>
    expect(after).to.deep.include(state)
    // Bob's registration has left the chain, so Bob's order has no approved signer.
    expect(await orderOf(test.db, id)).to.deep.include({
      status: 'CANCELLED',
      status_reason: 'SIGNER_REVOKED',
    })
    await fixture.audit()
  })
})
