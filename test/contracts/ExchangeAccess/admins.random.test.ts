/** Random sequences of everything that changes admins: at every moment at least one admin can act. */
import { expect } from 'chai'
import { ROLES } from '../../../stack/access.ts'
import { ExchangeAccess__factory } from '../../../typechain-types/factories/ExchangeAccess__factory.ts'
import { chain } from '../../support/exchange.ts'
import { errorOf } from '../../support/parity.ts'
import { randomOf } from '../../support/random.ts'

const DAY = 86_400
const STEPS = 150

async function freshAccess() {
  const { ethers, networkHelpers } = await chain()
  const accounts = (await ethers.getSigners()).slice(0, 5)
  const [first] = accounts
  if (!first) throw new Error('the test chain has no accounts')
  // Without a minimum delay on a test chain, admins act at once after the set-up too, unless they are granted a delay.
  const access = await new ExchangeAccess__factory(first).deploy(first, 0)
  return { access, accounts, time: networkHelpers.time }
}

describe('admins of ExchangeAccess', () => {
  for (const seed of [1, 2, 3, 4])
    it(`when they come and go at random (seed ${seed}), one stays active and adminCount is their number`, async () => {
      const { access, accounts, time } = await (await chain()).networkHelpers.loadFixture(freshAccess)
      const random = randomOf(seed)
      const some = () => accounts[random(accounts.length)]!
      const isActive = async (account: { address: string }) =>
        (await access.hasRole(ROLES.admin, account.address))[0]
      const active = async () => {
        const members = []
        for (const account of accounts) if (await isActive(account)) members.push(account)
        return members
      }
      const seen = new Set<string>()
      for (let step = 0; step < STEPS; step++) {
        const members = await active()
        const by = access.connect(members[random(members.length)]!)
        const account = some()
        const steps: readonly (() => Promise<unknown>)[] = [
          () => by.grantRole(ROLES.admin, account, 0),
          () => access.connect(account).acceptRole(ROLES.admin),
          () => access.connect(account).acceptRole(ROLES.admin),
          () => by.revokeRole(ROLES.admin, account),
          () => access.connect(account).renounceRole(ROLES.admin, account),
          () => by.setGrantDelay(ROLES.admin, random(3) * DAY),
          () => time.increase(1 + random(4) * DAY),
        ]
        const error = await errorOf(steps[random(steps.length)]!())
        seen.add(error === null ? 'done' : (/custom error '(\w+)/.exec(error)?.[1] ?? error))
        const left = await active()
        expect(left.length, `step ${step}`).to.be.at.least(1)
        expect(await access.adminCount()).to.equal(BigInt(left.length))
      }
      expect([...seen].sort()).to.deep.equal(['LastAdmin', 'RoleNotOffered', 'done'])
    })
})
