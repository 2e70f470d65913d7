import { expect } from 'chai'
import { type Wallet, ZeroAddress } from 'ethers'
import { caller, chain, type Exchange, perpetualExchange, wallet } from '../../support/exchange.ts'
import { expectRejected } from '../../support/refusals.ts'
import { forwarderOf, signForward } from '../support/forward.ts'

const DAYS_30 = 30 * 86_400

describe('registerSessionKey, revokeSessionKey, isAuthorized', () => {
  let exchange: Exchange
  const key = wallet('session key').address
  const owner = () => exchange.users[0]!
  const keys = async (user: Wallet = owner()) => exchange.keys.connect(await caller(exchange, user))
  const latest = () => exchange.connection.networkHelpers.time.latest()
  const isAuthorized = (permission: number, asOf: number) =>
    exchange.keys.isAuthorized(owner().address, key, permission, asOf)

  beforeEach(async () => {
    exchange = await (await chain()).networkHelpers.loadFixture(perpetualExchange)
  })

  it('when registered, it has the granted permission and no other, for the owner alone', async () => {
    await expect((await keys()).registerSessionKey(key, 1)).to.emit(exchange.keys, 'SessionKeyRegistered')
    const now = await latest()
    const [log] = await exchange.keys.queryFilter(
      exchange.keys.filters.SessionKeyRegistered(owner().address, key),
    )
    expect([...log!.args]).to.deep.equal([owner().address, key, 1n, BigInt(now), BigInt(now + DAYS_30)])
    expect([...(await exchange.keys.sessionKey(owner().address, key))]).to.deep.equal([1n, BigInt(now), 0n])
    expect(await isAuthorized(1, now * 1000)).to.equal(true)
    expect(await isAuthorized(2, now * 1000)).to.equal(false)
    expect(await exchange.keys.isAuthorized(exchange.users[1]!.address, key, 1, now * 1000)).to.equal(false)
  })
  it('when asOf lies before the registration, it is already authorized', async () => {
    await (await keys()).registerSessionKey(key, 1)
    expect(await isAuthorized(1, 0)).to.equal(true)
  })
  it('when the key is the zero address or the owner, it reverts with KeyInvalid', async () => {
    for (const bad of [ZeroAddress, owner().address]) {
      await expect((await keys()).registerSessionKey(bad, 1))
        .to.be.revertedWithCustomError(exchange.keys, 'KeyInvalid')
        .withArgs(owner().address, bad)
    }
  })
  it('when the permissions are 0 or contain an unknown bit, it reverts with PermissionsInvalid', async () => {
    for (const bad of [0, 4]) {
      await expect((await keys()).registerSessionKey(key, bad))
        .to.be.revertedWithCustomError(exchange.keys, 'PermissionsInvalid')
        .withArgs(bad)
    }
  })

  it('when 30 days have passed since the first registration, it expires despite later registrations', async () => {
    await (await keys()).registerSessionKey(key, 3)
    const end = ((await latest()) + DAYS_30) * 1000
    expect(await isAuthorized(1, end - 1)).to.equal(true)
    expect(await isAuthorized(1, end)).to.equal(false)
    await exchange.connection.networkHelpers.time.increase(86_400)
    await (await keys()).registerSessionKey(key, 3)
    expect(await isAuthorized(1, end)).to.equal(false)
  })

  it('when revoked, it stays authorized for asOf up to the revocation + 5 s and no longer', async () => {
    await (await keys()).registerSessionKey(key, 1)
    await expect((await keys()).revokeSessionKey(key)).to.emit(exchange.keys, 'SessionKeyRevoked')
    const revokedAt = (await latest()) * 1000
    expect(await isAuthorized(1, revokedAt + 5000)).to.equal(true)
    expect(await isAuthorized(1, revokedAt + 5001)).to.equal(false)
    expect((await exchange.keys.sessionKey(owner().address, key)).permissions).to.equal(1n)
  })
  it('when revoked twice, it keeps the time of the first revocation', async () => {
    await (await keys()).registerSessionKey(key, 1)
    await (await keys()).revokeSessionKey(key)
    const { revokedAt } = await exchange.keys.sessionKey(owner().address, key)
    await expect((await keys()).revokeSessionKey(key)).not.to.emit(exchange.keys, 'SessionKeyRevoked')
    expect((await exchange.keys.sessionKey(owner().address, key)).revokedAt).to.equal(revokedAt)
  })
  it('when revoked and registered again, it keeps its first registration time and so only the rest of the 30 days', async () => {
    await (await keys()).registerSessionKey(key, 1)
    const { registeredAt } = await exchange.keys.sessionKey(owner().address, key)
    await (await keys()).revokeSessionKey(key)
    await exchange.connection.networkHelpers.time.increase(16)
    await (await keys()).registerSessionKey(key, 2)
    expect([...(await exchange.keys.sessionKey(owner().address, key))]).to.deep.equal([2n, registeredAt, 0n])
  })
  it('when an approved or just revoked key is registered with fewer permissions, it reverts with PermissionsNarrowed', async () => {
    await (await keys()).registerSessionKey(key, 3)
    const refused = async () =>
      expect((await keys()).registerSessionKey(key, 2))
        .to.be.revertedWithCustomError(exchange.keys, 'PermissionsNarrowed')
        .withArgs(owner().address, key, 3, 2)
    await refused()
    await (await keys()).revokeSessionKey(key)
    await refused()
  })
  it('when an approved key is registered with one more permission, it has both at once', async () => {
    await (await keys()).registerSessionKey(key, 1)
    await (await keys()).registerSessionKey(key, 3)
    expect(await isAuthorized(2, (await latest()) * 1000)).to.equal(true)
  })
  it('when its 30 days are over, it cannot be registered again, revoked or not: KeyExpired', async () => {
    await (await keys()).registerSessionKey(key, 1)
    const end = (await latest()) + DAYS_30
    const { time } = exchange.connection.networkHelpers
    await time.increaseTo(end - 60)
    await (await keys()).registerSessionKey(key, 3)
    const refused = async () =>
      expect((await keys()).registerSessionKey(key, 3))
        .to.be.revertedWithCustomError(exchange.keys, 'KeyExpired')
        .withArgs(owner().address, key, end)
    await time.increaseTo(end)
    await refused()
    await expect((await keys()).revokeSessionKey(key)).to.emit(exchange.keys, 'SessionKeyRevoked')
    await refused()
  })
  it('when registered again in the last second of its 30 days, it is authorized until they end', async () => {
    await (await keys()).registerSessionKey(key, 1)
    const end = (await latest()) + DAYS_30
    const again = await keys()
    await exchange.connection.networkHelpers.time.setNextBlockTimestamp(end - 1)
    await again.registerSessionKey(key, 3)
    expect(await isAuthorized(3, end * 1000 - 1)).to.equal(true)
  })
  it('when revoked, it can be registered with fewer permissions 16 s later, not 15 s', async () => {
    await (await keys()).registerSessionKey(key, 3)
    await (await keys()).revokeSessionKey(key)
    const revokedAt = await latest()
    const again = await keys()
    const { time } = exchange.connection.networkHelpers
    await time.setNextBlockTimestamp(revokedAt + 15)
    await expect(again.registerSessionKey(key, 1)).to.be.revertedWithCustomError(
      exchange.keys,
      'PermissionsNarrowed',
    )
    await time.setNextBlockTimestamp(revokedAt + 16)
    await again.registerSessionKey(key, 1)
    expect(await isAuthorized(2, revokedAt * 1000)).to.equal(false)
  })
  it('when revoked and registered again with the same permissions, it stays authorized without a gap', async () => {
    await (await keys()).registerSessionKey(key, 1)
    await (await keys()).revokeSessionKey(key)
    await (await keys()).registerSessionKey(key, 1)
    expect(await isAuthorized(1, ((await latest()) + 60) * 1000)).to.equal(true)
  })
  it('when one owner registers a key, it is not authorized for another owner and cannot be revoked by that owner', async () => {
    const [, other] = exchange.users
    await (await keys()).registerSessionKey(key, 3)
    expect(await exchange.keys.isAuthorized(other!.address, key, 1, 0)).to.equal(false)
    await (await keys(other)).revokeSessionKey(key).catch(() => undefined)
    expect(await isAuthorized(1, (await latest()) * 1000)).to.equal(true)
  })
  it('when never registered, its revocation reverts with KeyNotRegistered', async () => {
    await expect((await keys()).revokeSessionKey(key))
      .to.be.revertedWithCustomError(exchange.keys, 'KeyNotRegistered')
      .withArgs(owner().address, key)
  })

  describe('through the forwarder', () => {
    const request = async (signer: Wallet, data: string) => {
      const call = { to: exchange.shared.accountManager, data }
      return forwarderOf(exchange).execute(await signForward(exchange, owner(), call, signer))
    }
    const data = () => exchange.keys.interface.encodeFunctionData('registerSessionKey', [key, 1])

    it('when the owner signs the request, it registers the key without gas from the owner', async () => {
      await request(owner(), data())
      expect((await exchange.keys.sessionKey(owner().address, key)).permissions).to.equal(1n)
    })
    it('when another account signs the request, it is rejected with ERC2771ForwarderInvalidSigner', async () => {
      await expectRejected(request(exchange.users[1]!, data()), /ERC2771ForwarderInvalidSigner/)
    })
    it('when an unauthorized caller appends the owner’s address to a direct call, it registers the key for the caller', async () => {
      const { connection, shared, admin } = exchange
      await admin.sendTransaction({ to: shared.accountManager, data: data() + owner().address.slice(2) })
      expect((await exchange.keys.sessionKey(owner().address, key)).registeredAt).to.equal(0n)
      expect((await exchange.keys.sessionKey(admin.address, key)).registeredAt).to.equal(
        BigInt(await connection.networkHelpers.time.latest()),
      )
    })
    it('is the only forwarder that the contract trusts', async () => {
      const { keys: manager, shared, admin } = exchange
      expect(await manager.isTrustedForwarder(shared.forwarder)).to.equal(true)
      expect(await manager.isTrustedForwarder(admin.address)).to.equal(false)
    })
  })
})
