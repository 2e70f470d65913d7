import { expect } from 'chai'
import { MaxUint256, Signature, type Wallet, ZeroAddress } from 'ethers'
import { TestUSDM__factory } from '../../../typechain-types/factories/TestUSDM__factory.ts'
import {
  caller,
  chain,
  type Exchange,
  pair,
  perpetualExchange,
  START_BALANCE,
  settle,
} from '../../support/exchange.ts'
import { e18 } from '../../support/markets.ts'
import { audit } from '../support/audit.ts'
import { bankOver } from '../support/tokens.ts'

const AMOUNT = e18('100')

describe('deposit, depositFor, depositWithPermit', () => {
  let exchange: Exchange
  const alice = () => exchange.users[0]!
  const asAlice = async () => exchange.bank.connect(await caller(exchange, alice()))

  beforeEach(async () => {
    exchange = await (await chain()).networkHelpers.loadFixture(perpetualExchange)
    await exchange.usdm.mint(alice().address, AMOUNT)
  })
  afterEach(() => audit(exchange))

  const approve = async (amount = AMOUNT) =>
    exchange.usdm.connect(await caller(exchange, alice())).approve(exchange.shared.marginBank, amount)
  const permit = async (deadline = MaxUint256) => {
    const { usdm, shared, spec } = exchange
    const domain = {
      name: await usdm.name(),
      version: '1',
      chainId: spec.chainId,
      verifyingContract: shared.usdm,
    }
    const fields = ['owner:address', 'spender:address', 'value:uint256', 'nonce:uint256', 'deadline:uint256']
    const Permit = fields.map((field) => ({ name: field.split(':')[0]!, type: field.split(':')[1]! }))
    const nonce = await usdm.nonces(alice().address)
    const value = { owner: alice().address, spender: shared.marginBank, value: AMOUNT, nonce, deadline }
    return Signature.from(await alice().signTypedData(domain, { Permit }, value))
  }

  it('when approved, deposit credits the caller and emits Deposited', async () => {
    await approve()
    await expect((await asAlice()).deposit(AMOUNT))
      .to.emit(exchange.bank, 'Deposited')
      .withArgs(alice().address, alice().address, AMOUNT)
    expect((await exchange.bank.account(alice().address)).free).to.equal(START_BALANCE + AMOUNT)
  })
  it('when depositing for another account, it credits that account and names the payer in Deposited', async () => {
    await approve()
    const bob = exchange.users[1]!
    await expect((await asAlice()).depositFor(bob.address, AMOUNT))
      .to.emit(exchange.bank, 'Deposited')
      .withArgs(bob.address, alice().address, AMOUNT)
  })
  it('when depositing for the zero address, it reverts with AccountZero', async () => {
    await expect((await asAlice()).depositFor(ZeroAddress, AMOUNT)).to.be.revertedWithCustomError(
      exchange.bank,
      'AccountZero',
    )
  })
  it('when the amount is zero, it reverts with AmountZero', async () => {
    await expect((await asAlice()).deposit(0)).to.be.revertedWithCustomError(exchange.bank, 'AmountZero')
  })
  it('when not approved, it reverts with ERC20InsufficientAllowance', async () => {
    await expect((await asAlice()).deposit(AMOUNT)).to.be.revertedWithCustomError(
      exchange.usdm,
      'ERC20InsufficientAllowance',
    )
  })
  it('when a valid permit is supplied, it deposits without an allowance', async () => {
    const { v, r, s } = await permit()
    await (await asAlice()).depositWithPermit(AMOUNT, MaxUint256, v, r, s)
    expect((await exchange.bank.account(alice().address)).free).to.equal(START_BALANCE + AMOUNT)
  })
  it('when the permit was already spent by another caller, it deposits from the resulting allowance', async () => {
    const { v, r, s } = await permit()
    await exchange.usdm.permit(alice().address, exchange.shared.marginBank, AMOUNT, MaxUint256, v, r, s)
    await (await asAlice()).depositWithPermit(AMOUNT, MaxUint256, v, r, s)
    expect((await exchange.bank.account(alice().address)).free).to.equal(START_BALANCE + AMOUNT)
  })
  it('when the permit is expired and there is no allowance, it reverts with ERC20InsufficientAllowance', async () => {
    const { v, r, s } = await permit(1n)
    await expect((await asAlice()).depositWithPermit(AMOUNT, 1, v, r, s)).to.be.revertedWithCustomError(
      exchange.usdm,
      'ERC20InsufficientAllowance',
    )
  })

  describe('given deposits up to 2^94, the most tokens that the bank accepts', () => {
    const MOST = 1n << 94n
    /** A deposit by the admin that fills the bank up to `tokens`. */
    const fillTo = async (owner: string, tokens: bigint) => {
      const { usdm, bank, admin, shared } = exchange
      const amount = tokens - (await usdm.balanceOf(shared.marginBank))
      await usdm.mint(admin.address, amount)
      await usdm.approve(shared.marginBank, amount)
      return bank.depositFor(owner, amount)
    }

    it('when a deposit exceeds it by one wei, it reverts with BankFull, which names the account', async () => {
      const { bank } = exchange
      const whale = exchange.users[2]!.address
      await expect(fillTo(whale, MOST + 1n))
        .to.be.revertedWithCustomError(bank, 'BankFull')
        .withArgs(whale, MOST + 1n, MOST)
      await fillTo(whale, MOST)
      await expect(fillTo(alice().address, MOST + 1n))
        .to.be.revertedWithCustomError(bank, 'BankFull')
        .withArgs(alice().address, MOST + 1n, MOST)
    })
    it('when all of it is the free balance of one account, parts that credit and debit the account settle', async () => {
      const [, bob] = exchange.users as [Wallet, Wallet]
      await settle(exchange, { price: 500_000, fills: pair(alice(), bob, 1000) })
      await fillTo(alice().address, MOST)
      const before = (await exchange.bank.account(alice().address)).free
      await settle(exchange, { price: 500_100, fills: pair(bob, alice(), 1000) })
      expect((await exchange.bank.account(alice().address)).free).to.be.greaterThan(before)
    })
    it('when tokens were transferred without a deposit, they count towards it and do not block withdrawals', async () => {
      const { token, bank, owner, asOwner, time } = await bankOver(TestUSDM__factory, 2n * AMOUNT)
      await token.connect(owner).approve(bank, 2n * AMOUNT)
      await asOwner.deposit(AMOUNT)
      await token.mint(bank, MOST - AMOUNT)
      await expect(asOwner.deposit(1))
        .to.be.revertedWithCustomError(bank, 'BankFull')
        .withArgs(owner.address, MOST + 1n, MOST)
      await asOwner.requestWithdrawal(AMOUNT)
      await time.increase(16)
      await asOwner.withdraw()
      await asOwner.deposit(AMOUNT)
    })
  })
})
