/** For each kind of token: the bank credits the amount that arrives and never owes more than it holds. */
import { expect } from 'chai'
import { MaxUint256, ZeroAddress } from 'ethers'
import { chain } from '../../support/exchange.ts'
import { e18 } from '../../support/markets.ts'
import { bankOver, MODELS, permitOf } from '../support/tokens.ts'

const AMOUNT = e18('100')

for (const [name, { factory, arrives }] of Object.entries(MODELS)) {
  const fixture = () => bankOver(factory, AMOUNT * 10n)

  describe(`MarginBank over a token ${name}`, () => {
    let at: Awaited<ReturnType<typeof fixture>>
    let given = 0n
    const free = async (account: string) => (await at.bank.account(account)).free
    const approve = (amount: bigint) => at.token.connect(at.owner).approve(at.bank, amount)
    const permit = async (deadline = MaxUint256) =>
      permitOf(at.token, at.owner, { spender: await at.bank.getAddress(), value: AMOUNT, deadline })

    beforeEach(async () => {
      at = await (await chain()).networkHelpers.loadFixture(fixture)
      given = 0n
    })
    afterEach(async () => {
      const { bank, token, owner } = at
      const account = await bank.account(owner)
      expect(await token.balanceOf(bank)).to.equal(account.free + account.pending + given)
    })

    it('when deposited, it credits the amount that arrives', async () => {
      const { bank, owner, asOwner } = at
      await approve(AMOUNT)
      await expect(asOwner.deposit(AMOUNT))
        .to.emit(bank, 'Deposited')
        .withArgs(owner.address, owner.address, arrives(AMOUNT))
      expect(await free(owner.address)).to.equal(arrives(AMOUNT))
    })
    it('when deposited for another account, it credits that account and names the payer in Deposited', async () => {
      const { bank, token, admin, owner } = at
      await token.mint(admin, AMOUNT)
      await token.connect(admin).approve(bank, AMOUNT)
      await expect(bank.connect(admin).depositFor(owner, AMOUNT))
        .to.emit(bank, 'Deposited')
        .withArgs(owner.address, await admin.getAddress(), arrives(AMOUNT))
    })
    it('when deposited with a permit, also one that was already used, it credits the amount that arrives', async () => {
      const { bank, token, owner, asOwner } = at
      const first = await permit()
      await asOwner.depositWithPermit(AMOUNT, MaxUint256, first.v, first.r, first.s)
      const { v, r, s } = await permit()
      await token.permit(owner, bank, AMOUNT, MaxUint256, v, r, s)
      await asOwner.depositWithPermit(AMOUNT, MaxUint256, v, r, s)
      expect(await free(owner.address)).to.equal(2n * arrives(AMOUNT))
    })
    it('when the permit is expired, it deposits only from an allowance', async () => {
      const { bank, token, owner, asOwner } = at
      const { v, r, s } = await permit(1n)
      await expect(asOwner.depositWithPermit(AMOUNT, 1, v, r, s))
        .to.be.revertedWithCustomError(token, 'ERC20InsufficientAllowance')
        .withArgs(await bank.getAddress(), 0, AMOUNT)
      await approve(AMOUNT)
      await asOwner.depositWithPermit(AMOUNT, 1, v, r, s)
      expect(await free(owner.address)).to.equal(arrives(AMOUNT))
    })
    it('when more than the allowance or the wallet’s balance is deposited, it reverts with the token’s error', async () => {
      const { token, asOwner } = at
      await approve(AMOUNT - 1n)
      await expect(asOwner.deposit(AMOUNT)).to.be.revertedWithCustomError(token, 'ERC20InsufficientAllowance')
      await approve(MaxUint256)
      await expect(asOwner.deposit(AMOUNT * 10n + 1n)).to.be.revertedWithCustomError(
        token,
        'ERC20InsufficientBalance',
      )
    })
    it('when the amount is zero or the receiver is the zero address, it reverts with AmountZero or AccountZero', async () => {
      const { bank, asOwner } = at
      await expect(asOwner.deposit(0)).to.be.revertedWithCustomError(bank, 'AmountZero')
      await expect(asOwner.depositFor(ZeroAddress, 1)).to.be.revertedWithCustomError(bank, 'AccountZero')
    })
    it('when withdrawn, it pays what it owed', async () => {
      const { bank, token, owner, asOwner, time } = at
      await approve(AMOUNT)
      await asOwner.deposit(AMOUNT)
      const owed = await free(owner.address)
      const before = await token.balanceOf(owner)
      await asOwner.requestWithdrawal(owed)
      await time.increase(16)
      await expect(asOwner.withdraw()).to.emit(bank, 'Withdrawn').withArgs(owner.address, owed)
      expect(await token.balanceOf(owner)).to.equal(before + arrives(owed))
      expect(await token.balanceOf(bank)).to.equal(0n)
    })
    it('when tokens are transferred to the bank without a deposit, no account is credited', async () => {
      const { bank, token, admin, owner, asOwner } = at
      await approve(AMOUNT)
      await asOwner.deposit(AMOUNT)
      given = AMOUNT
      await token.mint(bank, given)
      await approve(AMOUNT)
      await asOwner.deposit(AMOUNT)
      expect(await free(owner.address)).to.equal(2n * arrives(AMOUNT))
      expect((await bank.account(admin)).free).to.equal(0n)
    })
  })
}
