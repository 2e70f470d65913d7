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

  it('when registered, the key has its permissions and no others', async () => {
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
  it('when registered in the future of asOf, it counts: what is mined is known', async () => {
    await (await keys()).registerSessionKey(key, 1)
    expect(await isAuthorized(1, 0)).to.equal(true)
  })
  it('when the key is nobody or the owner himself', async () => {
    for (const bad of [ZeroAddress, owner().address]) {
      await expect((await keys()).registerSessionKey(bad, 1))
        .to.be.revertedWithCustomError(exchange.keys, 'KeyInvalid')
        .withArgs(owner().address, bad)
    }
  })
  it('when the permissions are none or unknown', async () => {
    for (const bad of [0, 4]) {
      await expect((await keys()).registerSessionKey(key, bad))
        .to.be.revertedWithCustomError(exchange.keys, 'PermissionsInvalid')
        .withArgs(bad)
    }
  })

  it('when 30 days have passed, access has ended, whatever was registered since', async () => {
    await (await keys()).registerSessionKey(key, 3)
    const end = ((await latest()) + DAYS_30) * 1000
    expect(await isAuthorized(1, end - 1)).to.equal(true)
    expect(await isAuthorized(1, end)).to.equal(false)
    await exchange.connection.networkHelpers.time.increase(86_400)
    await (await keys()).registerSessionKey(key, 3)
    expect(await isAuthorized(1, end)).to.equal(false)
  })

  it('when revoked, batches as of up to 5 s later are bound no more', async () => {
    await (await keys()).registerSessionKey(key, 1)
    await expect((await keys()).revokeSessionKey(key)).to.emit(exchange.keys, 'SessionKeyRevoked')
    const revokedAt = (await latest()) * 1000
    expect(await isAuthorized(1, revokedAt + 5000)).to.equal(true)
    expect(await isAuthorized(1, revokedAt + 5001)).to.equal(false)
    expect((await exchange.keys.sessionKey(owner().address, key)).permissions).to.equal(1n)
  })
  it('when revoked twice, the first counts', async () => {
    await (await keys()).registerSessionKey(key, 1)
    await (await keys()).revokeSessionKey(key)
    const { revokedAt } = await exchange.keys.sessionKey(owner().address, key)
    await expect((await keys()).revokeSessionKey(key)).not.to.emit(exchange.keys, 'SessionKeyRevoked')
    expect((await exchange.keys.sessionKey(owner().address, key)).revokedAt).to.equal(revokedAt)
  })
  it('when revoked and registered again, what is left of the 30 days comes back', async () => {
    await (await keys()).registerSessionKey(key, 1)
    const { registeredAt } = await exchange.keys.sessionKey(owner().address, key)
    await (await keys()).revokeSessionKey(key)
    await exchange.connection.networkHelpers.time.increase(16)
    await (await keys()).registerSessionKey(key, 2)
    expect([...(await exchange.keys.sessionKey(owner().address, key))]).to.deep.equal([2n, registeredAt, 0n])
  })
  it('when an approved key would lose a permission, batches under way are protected', async () => {
    await (await keys()).registerSessionKey(key, 3)
    const refused = async () =>
      expect((await keys()).registerSessionKey(key, 2))
        .to.be.revertedWithCustomError(exchange.keys, 'PermissionsNarrowed')
        .withArgs(owner().address, key, 3, 2)
    await refused()
    await (await keys()).revokeSessionKey(key)
    await refused()
  })
  it('when an approved key gains a permission, it has both at once', async () => {
    await (await keys()).registerSessionKey(key, 1)
    await (await keys()).registerSessionKey(key, 3)
    expect(await isAuthorized(2, (await latest()) * 1000)).to.equal(true)
  })
  it('when its 30 days are over, a key is not registered again, approved or revoked', async () => {
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
  it('when the time is the last second, it still is', async () => {
    await (await keys()).registerSessionKey(key, 1)
    const end = (await latest()) + DAYS_30
    const again = await keys()
    await exchange.connection.networkHelpers.time.setNextBlockTimestamp(end - 1)
    await again.registerSessionKey(key, 3)
    expect(await isAuthorized(3, end * 1000 - 1)).to.equal(true)
  })
  it('when revoked, permissions may shrink once no batch that relies on them can be settled', async () => {
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
  it('when revoked and approved again at once, the revocation never was', async () => {
    await (await keys()).registerSessionKey(key, 1)
    await (await keys()).revokeSessionKey(key)
    await (await keys()).registerSessionKey(key, 1)
    expect(await isAuthorized(1, ((await latest()) + 60) * 1000)).to.equal(true)
  })
  it('when an owner registers a key, it acts for him alone', async () => {
    const [, other] = exchange.users
    await (await keys()).registerSessionKey(key, 3)
    expect(await exchange.keys.isAuthorized(other!.address, key, 1, 0)).to.equal(false)
    await (await keys(other)).revokeSessionKey(key).catch(() => undefined)
    expect(await isAuthorized(1, (await latest()) * 1000)).to.equal(true)
  })
  it('when never registered, there is nothing to revoke', async () => {
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

    it('when the owner signed, his key is registered without his gas', async () => {
      await request(owner(), data())
      expect((await exchange.keys.sessionKey(owner().address, key)).permissions).to.equal(1n)
    })
    it('when somebody else signed', async () => {
      await expectRejected(request(exchange.users[1]!, data()), /ERC2771ForwarderInvalidSigner/)
    })
    it('when a stranger appends an address to his call, he stays himself', async () => {
      const { connection, shared, admin } = exchange
      await admin.sendTransaction({ to: shared.accountManager, data: data() + owner().address.slice(2) })
      expect((await exchange.keys.sessionKey(owner().address, key)).registeredAt).to.equal(0n)
      expect((await exchange.keys.sessionKey(admin.address, key)).registeredAt).to.equal(
        BigInt(await connection.networkHelpers.time.latest()),
      )
    })
    it('trusts this forwarder only', async () => {
      const { keys: manager, shared, admin } = exchange
      expect(await manager.isTrustedForwarder(shared.forwarder)).to.equal(true)
      expect(await manager.isTrustedForwarder(admin.address)).to.equal(false)
    })
  })
})
