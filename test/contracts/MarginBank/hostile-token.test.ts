import { expect } from 'chai'
import { ZeroAddress } from 'ethers'
import { ExchangeAccess__factory } from '../../../typechain-types/factories/ExchangeAccess__factory.ts'
import { MarginBank__factory } from '../../../typechain-types/factories/MarginBank__factory.ts'
import { HostileToken__factory } from '../../../typechain-types/factories/mocks/HostileToken__factory.ts'
import { chain, firstSigner } from '../../support/exchange.ts'
import { e18 } from '../../support/markets.ts'

const AMOUNT = e18('100')

async function hostileBank() {
  const admin = await firstSigner(await chain())
  const owner = await admin.getAddress()
  const token = await new HostileToken__factory(admin).deploy()
  const access = await new ExchangeAccess__factory(admin).deploy(owner, 0)
  const bank = await new MarginBank__factory(admin).deploy(token, access, owner)
  await token.mint(owner, AMOUNT * 10n)
  await token.approve(await bank.getAddress(), AMOUNT * 10n)
  return { token, bank, owner, access }
}

describe('MarginBank with a hostile token', () => {
  const load = async () => (await chain()).networkHelpers.loadFixture(hostileBank)

  it('when the token keeps a share of a transfer, only what arrives is credited', async () => {
    const { token, bank, owner } = await load()
    await token.keep(10)
    const arrived = (AMOUNT * 9n) / 10n
    await expect(bank.deposit(AMOUNT)).to.emit(bank, 'Deposited').withArgs(owner, owner, arrived)
    expect((await bank.account(owner)).free).to.equal(arrived)
  })

  it('when the token calls back into a deposit, it is shut out', async () => {
    const { token, bank } = await load()
    await token.callBack(await bank.getAddress(), bank.interface.encodeFunctionData('deposit', [1]))
    await expect(bank.deposit(AMOUNT)).to.be.revertedWithCustomError(bank, 'ReentrancyGuardReentrantCall')
  })

  it('when the token calls back into a withdrawal, it is shut out', async () => {
    const { token, bank } = await load()
    const { networkHelpers } = await chain()
    await bank.deposit(AMOUNT)
    await bank.requestWithdrawal(AMOUNT)
    await networkHelpers.time.increase(16)
    await token.callBack(await bank.getAddress(), bank.interface.encodeFunctionData('withdraw'))
    await expect(bank.withdraw()).to.be.revertedWithCustomError(bank, 'ReentrancyGuardReentrantCall')
  })

  it('when deployed without an admin or a treasury', async () => {
    const { bank, token, owner, access } = await load()
    const factory = new MarginBank__factory(await firstSigner(await chain()))
    const collateral = await token.getAddress()
    await expect(factory.deploy(collateral, ZeroAddress, owner)).to.be.revertedWithCustomError(
      bank,
      'AccessManagedInvalidAuthority',
    )
    await expect(factory.deploy(collateral, access, ZeroAddress)).to.be.revertedWithCustomError(
      bank,
      'AccountZero',
    )
  })
})
