import { expect } from 'chai'
import { AbiCoder, keccak256, ZeroAddress } from 'ethers'
import { LATCH_WEI } from '../../../stack/deploy.ts'
import { MarginBank__factory } from '../../../typechain-types/factories/MarginBank__factory.ts'
import { HostileToken__factory } from '../../../typechain-types/factories/mocks/HostileToken__factory.ts'
import { chain, wallet } from '../../support/exchange.ts'
import { e18 } from '../../support/markets.ts'
import { bankOver } from '../support/tokens.ts'

const AMOUNT = e18('100')
const LIE = { moved: 1, notMoved: 2, taken: 3 } as const
const DAY = 86_400
const WEI = { value: LATCH_WEI }
const BANK = MarginBank__factory.createInterface()
const fixture = () => bankOver(HostileToken__factory, AMOUNT * 10n)

describe('MarginBank with a hostile token', () => {
  let at: Awaited<ReturnType<typeof fixture>>
  beforeEach(async () => {
    at = await (await chain()).networkHelpers.loadFixture(fixture)
    await at.token.connect(at.owner).approve(at.bank, AMOUNT * 10n)
    await at.asOwner.deposit(AMOUNT)
  })
  const callBack = async (data: string) => at.token.callBack(at.bank, data)

  describe('given a token that calls back into the bank', () => {
    const guarded: readonly [string, string][] = [
      ['deposit', BANK.encodeFunctionData('deposit', [1])],
      ['depositFor', BANK.encodeFunctionData('depositFor', [wallet('thief').address, 1])],
      [
        'depositWithPermit',
        BANK.encodeFunctionData('depositWithPermit', [
          1,
          0,
          27,
          `0x${'00'.repeat(32)}`,
          `0x${'00'.repeat(32)}`,
        ]),
      ],
      ['withdraw', BANK.encodeFunctionData('withdraw')],
    ]
    for (const [name, data] of guarded) {
      it(`when it calls ${name} during a deposit, it reverts with ReentrancyGuardReentrantCall`, async () => {
        await callBack(data)
        await expect(at.asOwner.deposit(AMOUNT)).to.be.revertedWithCustomError(
          at.bank,
          'ReentrancyGuardReentrantCall',
        )
      })
      it(`when it calls ${name} during a withdrawal, it reverts with ReentrancyGuardReentrantCall`, async () => {
        await at.asOwner.requestWithdrawal(AMOUNT)
        await at.time.increase(16)
        await callBack(data)
        await expect(at.asOwner.withdraw()).to.be.revertedWithCustomError(
          at.bank,
          'ReentrancyGuardReentrantCall',
        )
      })
    }
    it('when it calls settleDeltas, it reverts with MarketNotListed', async () => {
      await callBack(BANK.encodeFunctionData('settleDeltas', [0, 0, []]))
      await expect(at.asOwner.deposit(AMOUNT))
        .to.be.revertedWithCustomError(at.bank, 'MarketNotListed')
        .withArgs(await at.token.getAddress())
    })
    it('when it calls requestWithdrawal for itself, it reverts with FreeBalanceInsufficient', async () => {
      await callBack(BANK.encodeFunctionData('requestWithdrawal', [1]))
      await expect(at.asOwner.deposit(AMOUNT)).to.be.revertedWithCustomError(
        at.bank,
        'FreeBalanceInsufficient',
      )
    })
  })

  describe('given a token whose return values are false', () => {
    it('when it reports success without moving tokens, it reverts with NothingArrived', async () => {
      await at.token.setLie(LIE.moved)
      await expect(at.asOwner.deposit(AMOUNT))
        .to.be.revertedWithCustomError(at.bank, 'NothingArrived')
        .withArgs(AMOUNT)
    })
    it('when it moves tokens and reports failure, the deposit reverts with SafeERC20FailedOperation', async () => {
      await at.token.setLie(LIE.notMoved)
      await expect(at.asOwner.deposit(AMOUNT))
        .to.be.revertedWithCustomError(at.bank, 'SafeERC20FailedOperation')
        .withArgs(await at.token.getAddress())
    })
    it('when a payout reports failure, it reverts and the pending amount stays', async () => {
      await at.asOwner.requestWithdrawal(AMOUNT)
      await at.time.increase(16)
      await at.token.setLie(LIE.notMoved)
      await expect(at.asOwner.withdraw()).to.be.revertedWithCustomError(at.bank, 'SafeERC20FailedOperation')
      expect((await at.bank.account(at.owner)).pending).to.equal(AMOUNT)
    })
    it('when it takes tokens from the bank instead of adding them, the deposit reverts with an underflow panic', async () => {
      await at.token.setLie(LIE.taken)
      await expect(at.asOwner.deposit(AMOUNT)).to.be.revertedWithPanic(0x11)
    })
  })

  it('when the token shrinks the bank’s balance between deposits, no credit exceeds its field', async () => {
    const { token, bank, owner, asOwner } = at
    const MOST = 1n << 94n
    const { networkHelpers } = await chain()
    // The token's balances are in its first slot.
    const place = keccak256(
      AbiCoder.defaultAbiCoder().encode(['address', 'uint256'], [await bank.getAddress(), 0]),
    )
    const deposit = async (amount: bigint) => {
      await networkHelpers.setStorageAt(await token.getAddress(), place, 0)
      await token.mint(owner, amount)
      await token.connect(owner).approve(bank, amount)
      return asOwner.deposit(amount)
    }
    for (let i = 0; i < 3; i++) await deposit(MOST)
    const { free } = await bank.account(owner)
    const FREE = (1n << 96n) - 1n
    await expect(deposit(FREE - free + 1n))
      .to.be.revertedWithCustomError(bank, 'CreditTooLarge')
      .withArgs(owner.address, FREE + 1n)
    await deposit(FREE - free)
    expect((await bank.account(owner)).free).to.equal(FREE)
  })

  describe('constructor', () => {
    it('when the collateral has no code, it reverts with CollateralWithoutCode', async () => {
      const { bank, access, admin } = at
      const withoutCode = wallet('no token').address
      await expect(new MarginBank__factory(admin).deploy(withoutCode, access, admin, 0, WEI))
        .to.be.revertedWithCustomError(bank, 'CollateralWithoutCode')
        .withArgs(withoutCode)
    })
    it('when the authority has no code or the treasury is the zero address, it reverts with AccessManagedInvalidAuthority or AccountZero', async () => {
      const { bank, token, access, admin } = at
      const factory = new MarginBank__factory(admin)
      await expect(factory.deploy(token, wallet('no authority').address, admin, 0, WEI))
        .to.be.revertedWithCustomError(bank, 'AccessManagedInvalidAuthority')
        .withArgs(wallet('no authority').address)
      await expect(factory.deploy(token, access, ZeroAddress, 0, WEI)).to.be.revertedWithCustomError(
        bank,
        'AccountZero',
      )
    })
    it('when the listing delay is above 60 days, it reverts with DelayOutOfRange', async () => {
      const { bank, token, access, admin } = at
      const factory = new MarginBank__factory(admin)
      await factory.deploy(token, access, admin, 60 * DAY, WEI)
      await expect(factory.deploy(token, access, admin, 60 * DAY + 1, WEI))
        .to.be.revertedWithCustomError(bank, 'DelayOutOfRange')
        .withArgs(60 * DAY + 1, 0, 60 * DAY)
    })
  })
})
