/** `PauseLatch` holds 1 wei while no pause is active. These tests follow that wei through pauses and forced transfers of ether. */
import { expect } from 'chai'
import { getCreateAddress, ZeroAddress } from 'ethers'
import { LATCH_WEI } from '../../../stack/deploy.ts'
import { MarginBank__factory } from '../../../typechain-types/factories/MarginBank__factory.ts'
import { HostileToken__factory } from '../../../typechain-types/factories/mocks/HostileToken__factory.ts'
import { PauseLatch__factory } from '../../../typechain-types/factories/PauseLatch__factory.ts'
import { chain, firstSigner, wallet } from '../../support/exchange.ts'
import { e18 } from '../../support/markets.ts'
import { bankOver } from '../support/tokens.ts'

const DAY = 86_400
const AMOUNT = e18('100')

async function latched() {
  const at = await bankOver(HostileToken__factory, AMOUNT * 10n)
  const latch = PauseLatch__factory.connect(await at.bank.pauseLatch(), at.admin)
  const guardian = wallet('guardian without ether').address
  await at.access.grantRole(3, guardian, 0)
  await at.token.connect(at.owner).approve(at.bank, AMOUNT * 10n)
  await at.asOwner.deposit(AMOUNT)
  return { ...at, latch, guardian, ...(await chain()) }
}

describe('PauseLatch', () => {
  let at: Awaited<ReturnType<typeof latched>>
  beforeEach(async () => {
    at = await (await chain()).networkHelpers.loadFixture(latched)
  })
  const weiOf = (of: object) => at.ethers.provider.getBalance(of as never)
  /** Wei of the bank, wei of the latch, and whether the bank is paused. */
  const state = async () => [await weiOf(at.bank), await weiOf(at.latch), await at.bank.isPaused()]
  const refused = (call: Promise<unknown>, contract: object, error: string, ...args: unknown[]) =>
    expect(call)
      .to.be.revertedWithCustomError(contract as never, error)
      .withArgs(...args)
  const anyAccount = async () => at.bank.connect(await firstSigner(at))
  /** Forces ether on an address: a contract that self-destructs in its constructor. */
  const force = async (to: object, value: bigint) => {
    const address = String(await (to as typeof at.bank).getAddress()).slice(2)
    await at.admin.sendTransaction({ data: `0x73${address}ff`, value })
  }
  /** Advances to the end of the current pause. */
  const end = async () => at.time.increaseTo((await at.bank.lastPause()).endsAt)
  const nextPause = async () => at.time.increaseTo((await at.bank.lastPause()).startedAt + BigInt(30 * DAY))

  describe('constructor', () => {
    const deploy = (value: bigint) =>
      new MarginBank__factory(at.admin).deploy(at.token, at.access, at.admin, 0, { value })

    it('when the bank is deployed with 1 wei, the latch holds it and names its bank', async () => {
      expect(await state()).to.deep.equal([0n, LATCH_WEI, false])
      expect(await at.latch.bank()).to.equal(await at.bank.getAddress())
    })
    it('when the bank is deployed without ether, it reverts with LatchWithoutWei', () =>
      refused(deploy(0n), at.bank, 'LatchWithoutWei'))
    it('when the bank is deployed with more, or its address already had ether, the latch receives all of it', async () => {
      const from = await at.admin.getAddress()
      const to = getCreateAddress({ from, nonce: (await at.admin.getNonce()) + 1 })
      await at.admin.sendTransaction({ to, value: 5n })
      const bank = await deploy(7n)
      expect(await bank.getAddress()).to.equal(to)
      expect([await weiOf(bank), await weiOf({ getAddress: () => bank.pauseLatch() })]).to.deep.equal([
        0n,
        12n,
      ])
    })
  })

  describe('through pauses', () => {
    it('when paused and unpaused repeatedly, the wei moves to the bank and back each time', async () => {
      for (let round = 0; round < 3; round++) {
        await at.bank.pause()
        expect(await state()).to.deep.equal([1n, 0n, true])
        await at.bank.unpause()
        expect(await state()).to.deep.equal([0n, 1n, false])
        await nextPause()
      }
    })
    it('when a pause has ended by itself, payments work and any account may return the wei with restoreLatch', async () => {
      await at.bank.pause()
      const { endsAt } = await at.bank.lastPause()
      await refused((await anyAccount()).restoreLatch(), at.bank, 'BankPaused', endsAt)
      expect(await state()).to.deep.equal([1n, 0n, true])
      await end()
      expect(await state()).to.deep.equal([1n, 0n, false])
      await at.asOwner.deposit(AMOUNT)
      await (await anyAccount()).restoreLatch()
      expect(await state()).to.deep.equal([0n, 1n, false])
      await refused((await anyAccount()).restoreLatch(), at.bank, 'AmountZero')
    })
    it('when the wei was not returned before the next pause, that pause works with it', async () => {
      await at.bank.pause()
      await nextPause()
      expect(await state()).to.deep.equal([1n, 0n, false])
      await at.bank.pause()
      expect(await state()).to.deep.equal([1n, 0n, true])
      const { endsAt } = await at.bank.lastPause()
      await refused(at.asOwner.deposit(1), at.bank, 'BankPaused', endsAt)
      await at.bank.unpause()
      expect(await state()).to.deep.equal([0n, 1n, false])
    })
    it('when the pause ends, restoreLatch succeeds in that second and reverts with BankPaused one second earlier', async () => {
      await at.bank.pause()
      const { endsAt } = await at.bank.lastPause()
      await at.time.setNextBlockTimestamp(endsAt - 1n)
      await refused((await anyAccount()).restoreLatch(), at.bank, 'BankPaused', endsAt)
      await at.time.setNextBlockTimestamp(endsAt)
      await (await anyAccount()).restoreLatch()
      expect(await state()).to.deep.equal([0n, 1n, false])
    })
    it('when the guardian owns no ether, pause and unpause still work', async () => {
      const { networkHelpers, ethers, guardian } = at
      await networkHelpers.impersonateAccount(guardian)
      const signer = await ethers.getSigner(guardian)
      const free = { gasPrice: 0 }
      const send = async (call: () => Promise<unknown>) => {
        await networkHelpers.setNextBlockBaseFeePerGas(0)
        await call()
        expect(await ethers.provider.getBalance(guardian)).to.equal(0n)
      }
      await send(() => at.access.connect(signer).acceptRole(3, free))
      await at.access.setTargetFunctionRole(
        at.bank,
        ['pause', 'unpause'].map((name) => at.bank.interface.getFunction(name as 'pause').selector),
        3,
      )
      await send(() => at.bank.connect(signer).pause(free))
      expect(await state()).to.deep.equal([1n, 0n, true])
      await send(() => at.bank.connect(signer).unpause(free))
      expect(await state()).to.deep.equal([0n, 1n, false])
    })
  })

  describe('with forced or unexpected ether', () => {
    it('when ether is forced on the bank, it is not paused, and any account may move the ether to the latch', async () => {
      await force(at.bank, 5n)
      expect(await state()).to.deep.equal([5n, 1n, false])
      await at.asOwner.requestWithdrawal(AMOUNT)
      await at.time.increase(16)
      await at.asOwner.withdraw()
      await (await anyAccount()).restoreLatch()
      expect(await state()).to.deep.equal([0n, 6n, false])
    })
    it('when ether is forced before or during a pause, the pause starts and ends as usual', async () => {
      await force(at.bank, 5n)
      await at.bank.pause()
      expect(await state()).to.deep.equal([5n, 1n, true])
      await force(at.bank, 1n)
      await force(at.latch, 2n)
      expect(await state()).to.deep.equal([6n, 3n, true])
      await at.bank.unpause()
      expect(await state()).to.deep.equal([0n, 9n, false])
      await nextPause()
      await at.bank.pause()
      expect(await state()).to.deep.equal([9n, 0n, true])
      const { endsAt } = await at.bank.lastPause()
      await refused(at.asOwner.deposit(1), at.bank, 'BankPaused', endsAt)
    })
    it('when an unauthorized caller releases the latch, it reverts with NotBank', async () => {
      const { latch, owner } = at
      await refused(latch.connect(owner).release(), latch, 'NotBank', owner.address)
    })
    it('when ether is sent to bank or latch by an ordinary call, it reverts with SenderNotLatch or NotBank', async () => {
      const { bank, latch, owner } = at
      const pay = async (to: object, data = '0x') =>
        owner.sendTransaction({ to: await (to as typeof bank).getAddress(), value: 1n, data })
      await refused(pay(bank), bank, 'SenderNotLatch', owner.address)
      await refused(pay(latch), latch, 'NotBank', owner.address)
      for (const contract of [bank, latch])
        await expect(pay(contract, '0x12345678')).to.be.revertedWithoutReason(at.ethers)
      const paid = bank.interface.encodeFunctionData('restoreLatch')
      await expect(pay(bank, paid)).to.be.revertedWithoutReason(at.ethers)
      expect(await state()).to.deep.equal([0n, 1n, false])
    })
    it('when a token calls back into latch or bank during a transfer, the wei stays in the latch', async () => {
      const { bank, latch, token, asOwner } = at
      await token.callBack(latch, latch.interface.encodeFunctionData('release'))
      await refused(asOwner.deposit(1), latch, 'NotBank', String(token.target))
      const restoreLatch = bank.interface.encodeFunctionData('restoreLatch')
      await token.callBack(bank, restoreLatch)
      await refused(asOwner.deposit(1), bank, 'AmountZero')
      await force(bank, 5n)
      await asOwner.deposit(1)
      expect(await state()).to.deep.equal([0n, 6n, false])
      await token.callBack(ZeroAddress, '0x')
      await bank.pause()
      await end()
      await token.callBack(bank, restoreLatch)
      await asOwner.requestWithdrawal(AMOUNT)
      await at.time.increase(16)
      await asOwner.withdraw()
      expect(await state()).to.deep.equal([0n, 6n, false])
      expect(await token.balanceOf(at.owner.address)).to.equal(AMOUNT * 10n - 1n)
    })
  })
})
