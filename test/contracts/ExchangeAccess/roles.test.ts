import { expect } from 'chai'
import { ROLES } from '../../../stack/access.ts'
import { ExchangeAccess__factory } from '../../../typechain-types/factories/ExchangeAccess__factory.ts'
import { chain } from '../../support/exchange.ts'

const DAY = 86_400
const MINIMUM = 2 * DAY

async function freshAccess() {
  const { ethers, networkHelpers } = await chain()
  const [admin, grantee, unauthorized, ...others] = await ethers.getSigners()
  if (!admin || !grantee || !unauthorized) throw new Error('the test chain has too few accounts')
  const access = await new ExchangeAccess__factory(admin).deploy(admin, MINIMUM)
  return { access, admin, grantee, unauthorized, others, time: networkHelpers.time }
}

/** As `freshAccess`, with a grant delay of one day for admins. Without a minimum delay, the admin still acts at once after set-up. */
async function slowGrants() {
  const fresh = await freshAccess()
  const access = await new ExchangeAccess__factory(fresh.admin).deploy(fresh.admin, 0)
  await access.setGrantDelay(ROLES.admin, DAY)
  await fresh.time.increase(5 * DAY)
  return { ...fresh, access }
}

describe('roles of ExchangeAccess', () => {
  let at: Awaited<ReturnType<typeof freshAccess>>
  beforeEach(async () => {
    at = await (await chain()).networkHelpers.loadFixture(freshAccess)
  })
  const offer = (role: bigint, delay = 0) => at.access.grantRole(role, at.grantee, delay)
  const accept = (role: bigint) => at.access.connect(at.grantee).acceptRole(role)
  const has = async (role: bigint, account = at.grantee) => [...(await at.access.hasRole(role, account))]
  const refused = (call: Promise<unknown>, error: string, ...args: unknown[]) =>
    expect(call)
      .to.be.revertedWithCustomError(at.access, error)
      .withArgs(...args)

  describe('granting a role in two steps', () => {
    it('when granted, the role is offered; when accepted, the account is a member with its execution delay', async () => {
      const { access, grantee, time } = at
      await expect(offer(ROLES.guardian, 60))
        .to.emit(access, 'RoleOffered')
        .withArgs(ROLES.guardian, grantee.address, 60, (await time.latest()) + 7 * DAY + 1)
      expect(await has(ROLES.guardian)).to.deep.equal([false, 0n])
      expect((await access.offeredRole(ROLES.guardian, grantee)).executionDelay).to.equal(60n)
      await expect(accept(ROLES.guardian)).to.emit(access, 'RoleGranted')
      expect(await has(ROLES.guardian)).to.deep.equal([true, 60n])
      expect([...(await access.offeredRole(ROLES.guardian, grantee))]).to.deep.equal([0n, 0n])
    })
    it('when never offered or accepted a second time, it reverts with RoleNotOffered', async () => {
      const { grantee } = at
      await refused(accept(ROLES.listing), 'RoleNotOffered', ROLES.listing, grantee.address)
      await offer(ROLES.listing)
      await accept(ROLES.listing)
      await refused(accept(ROLES.listing), 'RoleNotOffered', ROLES.listing, grantee.address)
    })
    it('when another role or another account was offered, it reverts with RoleNotOffered', async () => {
      const { access, unauthorized } = at
      await offer(ROLES.listing)
      await refused(accept(ROLES.treasury), 'RoleNotOffered', ROLES.treasury, at.grantee.address)
      const call = access.connect(unauthorized).acceptRole(ROLES.listing)
      await refused(call, 'RoleNotOffered', ROLES.listing, unauthorized.address)
    })
    it('when a week has passed, the offer has expired; one second earlier it can be accepted', async () => {
      const { access, grantee, time } = at
      await offer(ROLES.listing)
      await time.increase(60)
      await offer(ROLES.guardian)
      const { expiresAt } = await access.offeredRole(ROLES.listing, grantee)
      await time.increaseTo(expiresAt)
      expect([...(await access.offeredRole(ROLES.listing, grantee))]).to.deep.equal([0n, 0n])
      await refused(accept(ROLES.listing), 'RoleNotOffered', ROLES.listing, grantee.address)

      const later = await access.offeredRole(ROLES.guardian, grantee)
      await time.setNextBlockTimestamp(later.expiresAt - 1n)
      await accept(ROLES.guardian)
    })
    it('when the offer is withdrawn or declined, accepting it reverts with RoleNotOffered', async () => {
      const { access, grantee } = at
      await offer(ROLES.listing)
      await expect(access.revokeRole(ROLES.listing, grantee))
        .to.emit(access, 'RoleOfferWithdrawn')
        .withArgs(ROLES.listing, grantee.address)
      await refused(accept(ROLES.listing), 'RoleNotOffered', ROLES.listing, grantee.address)
      await offer(ROLES.listing)
      await access.connect(grantee).renounceRole(ROLES.listing, grantee)
      await refused(accept(ROLES.listing), 'RoleNotOffered', ROLES.listing, grantee.address)
    })
    it('when the role has a grant delay, the delay starts at acceptance', async () => {
      const { grantee, time } = at
      // No minimum delay: the admin may then act after the five days until a grant delay takes effect.
      const delayed = await new ExchangeAccess__factory(at.admin).deploy(at.admin, 0)
      await delayed.setGrantDelay(ROLES.guardian, DAY)
      await time.increase(5 * DAY)
      await delayed.grantRole(ROLES.guardian, grantee, 0)
      await time.increase(2 * DAY)
      await delayed.connect(grantee).acceptRole(ROLES.guardian)
      expect((await delayed.hasRole(ROLES.guardian, grantee)).isMember).to.equal(false)
      await time.increase(DAY)
      expect((await delayed.hasRole(ROLES.guardian, grantee)).isMember).to.equal(true)
    })
    it('when a member is granted the role again, a longer delay applies at once, a shorter one after the difference', async () => {
      const { access, time } = at
      await offer(ROLES.guardian, 600)
      await accept(ROLES.guardian)
      await expect(offer(ROLES.guardian, 1000)).not.to.emit(access, 'RoleOffered')
      expect(await has(ROLES.guardian)).to.deep.equal([true, 1000n])
      await offer(ROLES.guardian, 100)
      expect(await has(ROLES.guardian)).to.deep.equal([true, 1000n])
      await time.increase(900)
      expect(await has(ROLES.guardian)).to.deep.equal([true, 100n])
    })
    it('when the role is PUBLIC_ROLE, granting it reverts with AccessManagerLockedRole', async () => {
      const publicRole = await at.access.PUBLIC_ROLE()
      await refused(offer(publicRole), 'AccessManagerLockedRole', publicRole)
    })
    it('when the caller is not the admin, it reverts with AccessManagerUnauthorizedAccount', async () => {
      const { access, unauthorized } = at
      const call = access.connect(unauthorized).grantRole(ROLES.listing, unauthorized, 0)
      await refused(call, 'AccessManagerUnauthorizedAccount', unauthorized.address, ROLES.admin)
    })
  })

  describe('protecting the last admin', () => {
    it('when the last admin renounces or revokes the role, it reverts with LastAdmin', async () => {
      const { access, admin } = at
      await refused(access.renounceRole(ROLES.admin, admin), 'LastAdmin', admin.address)
      await refused(access.revokeRole(ROLES.admin, admin), 'LastAdmin', admin.address)
      expect(await access.adminCount()).to.equal(1n)
    })
    it('when the successor has only been offered the role, renouncing it reverts with LastAdmin', async () => {
      await offer(ROLES.admin)
      await refused(at.access.renounceRole(ROLES.admin, at.admin), 'LastAdmin', at.admin.address)
    })
    it('when a successor has accepted, the first admin may renounce; the successor is then the last admin', async () => {
      const { access, admin, grantee } = at
      await offer(ROLES.admin, MINIMUM)
      await accept(ROLES.admin)
      expect(await access.adminCount()).to.equal(2n)
      await access.renounceRole(ROLES.admin, admin)
      expect(await has(ROLES.admin, admin)).to.deep.equal([false, 0n])
      const call = access.connect(grantee).renounceRole(ROLES.admin, grantee)
      await refused(call, 'LastAdmin', grantee.address)
    })
    it('when a delay is granted again or a non-member is revoked, adminCount stays 1', async () => {
      const { access, admin } = at
      await access.grantRole(ROLES.admin, admin, 0)
      await access.revokeRole(ROLES.admin, at.unauthorized)
      expect(await access.adminCount()).to.equal(1n)
      await refused(access.renounceRole(ROLES.admin, admin), 'LastAdmin', admin.address)
    })
  })

  describe('when admins have a grant delay of a day and the successor has just accepted', () => {
    beforeEach(async () => {
      at = await (await chain()).networkHelpers.loadFixture(slowGrants)
      await offer(ROLES.admin)
      await accept(ROLES.admin)
    })

    it('the only active admin can neither renounce nor be revoked: both revert with LastAdmin', async () => {
      const { access, admin, grantee } = at
      expect(await has(ROLES.admin, grantee)).to.deep.equal([false, 0n])
      expect(await access.adminCount()).to.equal(1n)
      await refused(access.renounceRole(ROLES.admin, admin), 'LastAdmin', admin.address)
      await refused(access.revokeRole(ROLES.admin, admin), 'LastAdmin', admin.address)
    })
    it('the first admin may renounce as soon as the successor is active, and not a second earlier', async () => {
      const { access, admin, grantee, time } = at
      const [since] = await access.getAccess(ROLES.admin, grantee)
      await time.setNextBlockTimestamp(since - 1n)
      await refused(access.renounceRole(ROLES.admin, admin), 'LastAdmin', admin.address)
      await time.setNextBlockTimestamp(since)
      await access.renounceRole(ROLES.admin, admin)
      expect(await access.adminCount()).to.equal(1n)
      expect(await has(ROLES.admin, grantee)).to.deep.equal([true, 0n])
    })
    it('the successor can be revoked or renounce: the active admin remains', async () => {
      const { access, grantee } = at
      await access.revokeRole(ROLES.admin, grantee)
      await offer(ROLES.admin)
      await accept(ROLES.admin)
      await access.connect(grantee).renounceRole(ROLES.admin, grantee)
      expect(await access.adminCount()).to.equal(1n)
    })
    it('when two active admins have scheduled each other’s removal, only the first removal executes', async () => {
      const { access, admin, grantee, time } = at
      await time.increase(DAY)
      await access.grantRole(ROLES.admin, grantee, 60)
      await access.grantRole(ROLES.admin, admin, 60)
      const removal = (of: string) => access.interface.encodeFunctionData('revokeRole', [ROLES.admin, of])
      await access.schedule(access, removal(grantee.address), 0)
      await access.connect(grantee).schedule(access, removal(admin.address), 0)
      await time.increase(60)
      await access.execute(access, removal(grantee.address))
      await refused(
        access.connect(grantee).execute(access, removal(admin.address)),
        'AccessManagerUnauthorizedCall',
        grantee.address,
        await access.getAddress(),
        removal('0x'.padEnd(42, '0')).slice(0, 10),
      )
      expect(await access.adminCount()).to.equal(1n)
    })
  })

  it('when sixteen accounts are admins, acceptance by a seventeenth reverts with TooManyAdmins until one leaves', async () => {
    const { access, others } = at
    const [seventeenth, ...joining] = others
    for (const account of [...joining.slice(0, 15), seventeenth!])
      await access.grantRole(ROLES.admin, account, 0)
    for (const account of joining.slice(0, 15)) await access.connect(account).acceptRole(ROLES.admin)
    expect(await access.adminCount()).to.equal(16n)
    await refused(access.connect(seventeenth).acceptRole(ROLES.admin), 'TooManyAdmins', 16)
    await access.revokeRole(ROLES.admin, joining[0]!)
    await access.connect(seventeenth).acceptRole(ROLES.admin)
    expect(await access.adminCount()).to.equal(16n)
  })

  describe('bounded delays', () => {
    it('when a grant delay or a target’s admin delay is above 30 days, setting it reverts with DelayOutOfRange', async () => {
      const { access } = at
      const most = 30 * DAY
      for (const set of [
        (delay: number) => access.setGrantDelay(ROLES.listing, delay),
        (delay: number) => access.setGrantDelay(ROLES.admin, delay),
        (delay: number) => access.setTargetAdminDelay(access, delay),
      ]) {
        for (const delay of [most + 1, 2 ** 32 - 1])
          await refused(set(delay), 'DelayOutOfRange', delay, 0, most)
        await set(most)
      }
    })
    it('when set-up is over, every role except the guardian’s has at least the minimum delay', async () => {
      const { access, admin, time } = at
      for (const role of [ROLES.listing, ROLES.guardian]) {
        await offer(role)
        await accept(role)
      }
      const setupEnd = await access.setupEnd()
      await time.setNextBlockTimestamp(setupEnd - 1n)
      await access.labelRole(9, 'the last moment')
      expect(await has(ROLES.listing)).to.deep.equal([true, 0n])
      await time.increaseTo(setupEnd)
      expect(await has(ROLES.listing)).to.deep.equal([true, BigInt(MINIMUM)])
      expect(await has(ROLES.admin, admin)).to.deep.equal([true, BigInt(MINIMUM)])
      expect(await has(ROLES.guardian)).to.deep.equal([true, 0n])
      expect(await has(await access.PUBLIC_ROLE())).to.deep.equal([true, 0n])
    })
    it('when the admin acts after set-up, it reverts unless the operation was scheduled at least the minimum delay ago', async () => {
      const { access, admin, grantee, time } = at
      await time.increaseTo(await access.setupEnd())
      const grant = access.interface.encodeFunctionData('grantRole', [ROLES.listing, grantee.address, 0])
      const id = await access.hashOperation(admin, access, grant)
      await refused(offer(ROLES.listing), 'AccessManagerNotScheduled', id)
      await access.schedule(access, grant, 0)
      await time.increase(MINIMUM - 2)
      await refused(offer(ROLES.listing), 'AccessManagerNotReady', id)
      await time.increase(2)
      await expect(offer(ROLES.listing)).to.emit(access, 'RoleOffered')
      await refused(offer(ROLES.listing), 'AccessManagerNotScheduled', id)
    })
    it('when a delay above 30 days is granted or deployed, it reverts with DelayOutOfRange', async () => {
      const { access, admin } = at
      await offer(ROLES.listing, 30 * DAY)
      await refused(offer(ROLES.listing, 30 * DAY + 1), 'DelayOutOfRange', 30 * DAY + 1, 0, 30 * DAY)
      const deployment = new ExchangeAccess__factory(admin).deploy(admin, 30 * DAY + 1)
      await refused(deployment, 'DelayOutOfRange', 30 * DAY + 1, 0, 30 * DAY)
      expect(await access.minimumDelay()).to.equal(BigInt(MINIMUM))
    })
  })

  it('when the guardian cancels the scheduled removal of an admin, it reverts with AccessManagerUnauthorizedCancel', async () => {
    const { access, admin, grantee, time } = at
    await offer(ROLES.guardian)
    await accept(ROLES.guardian)
    await time.increaseTo(await access.setupEnd())
    const removal = access.interface.encodeFunctionData('revokeRole', [ROLES.admin, grantee.address])
    await access.schedule(access, removal, 0)
    const [target, selector] = [await access.getAddress(), removal.slice(0, 10)]
    const cancel = access.connect(grantee).cancel(admin, access, removal)
    const refusal = [grantee.address, admin.address, target, selector]
    await refused(cancel, 'AccessManagerUnauthorizedCancel', ...refusal)
    await access.cancel(admin, access, removal)
  })

  it('rejects multicall with NoMulticall', () => refused(at.access.multicall([]), 'NoMulticall'))

  it('lets the guardian cancel scheduled operations of every role except the admin’s', async () => {
    const { access } = at
    for (const role of [ROLES.listing, ROLES.parameters, ROLES.treasury])
      expect(await access.getRoleGuardian(role)).to.equal(ROLES.guardian)
    expect(await access.getRoleGuardian(ROLES.admin)).to.equal(ROLES.admin)
    const labels = await access.queryFilter(access.filters.RoleLabel())
    expect(labels.map(({ args }) => [args.roleId, args.label])).to.deep.equal(
      Object.entries(ROLES)
        .filter(([name]) => name !== 'admin')
        .map(([name, id]) => [id, name.toUpperCase()]),
    )
  })
})
