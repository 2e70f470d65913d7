import { expect } from 'chai'
import { audit } from '../../support/audit.ts'
import { caller, chain, type Exchange, perpetualExchange, START_BALANCE } from '../../support/exchange.ts'
import { e18 } from '../../support/markets.ts'

const AMOUNT = e18('100')

describe('requestWithdrawal and withdraw', () => {
  let exchange: Exchange
  const alice = () => exchange.users[0]!
  const bank = async () => exchange.bank.connect(await caller(exchange, alice()))
  const latest = () => exchange.connection.networkHelpers.time.latest()
  const at = (second: number) => exchange.connection.networkHelpers.time.setNextBlockTimestamp(second)

  beforeEach(async () => {
    exchange = await (await chain()).networkHelpers.loadFixture(perpetualExchange)
  })
  afterEach(() => audit(exchange))

  it('when requested, it leaves free at once', async () => {
    const sent = await (await bank()).requestWithdrawal(AMOUNT)
    const requestedAt = BigInt(await latest())
    await expect(sent)
      .to.emit(exchange.bank, 'WithdrawalRequested')
      .withArgs(alice().address, AMOUNT, AMOUNT, requestedAt)
    const account = await exchange.bank.account(alice().address)
    expect([...account]).to.deep.equal([START_BALANCE - AMOUNT, AMOUNT, requestedAt])
  })
  it('when more than free is requested', async () => {
    await expect((await bank()).requestWithdrawal(START_BALANCE + 1n))
      .to.be.revertedWithCustomError(exchange.bank, 'FreeBalanceInsufficient')
      .withArgs(alice().address, START_BALANCE, START_BALANCE + 1n)
  })
  it('when nothing is requested', async () => {
    await expect((await bank()).requestWithdrawal(0)).to.be.revertedWithCustomError(
      exchange.bank,
      'AmountZero',
    )
  })
  it('when nothing is pending', async () => {
    await expect((await bank()).withdraw())
      .to.be.revertedWithCustomError(exchange.bank, 'NothingPending')
      .withArgs(alice().address)
  })
  it('when 15 s have passed, not yet; a second later, it is paid', async () => {
    const caller_ = await bank()
    await caller_.requestWithdrawal(AMOUNT)
    const requestedAt = await latest()
    await at(requestedAt + 15)
    await expect(caller_.withdraw())
      .to.be.revertedWithCustomError(exchange.bank, 'WithdrawalEarly')
      .withArgs(alice().address, requestedAt + 15)
    await at(requestedAt + 16)
    await expect(caller_.withdraw()).to.emit(exchange.bank, 'Withdrawn').withArgs(alice().address, AMOUNT)
    expect(await exchange.usdm.balanceOf(alice().address)).to.equal(AMOUNT)
    expect((await exchange.bank.account(alice().address)).pending).to.equal(0n)
  })
  it('when requested again, the clock restarts for the whole amount', async () => {
    const caller_ = await bank()
    await caller_.requestWithdrawal(AMOUNT)
    await at((await latest()) + 14)
    await caller_.requestWithdrawal(AMOUNT)
    const again = await latest()
    await at(again + 10)
    await expect(caller_.withdraw()).to.be.revertedWithCustomError(exchange.bank, 'WithdrawalEarly')
    await at(again + 16)
    await expect(caller_.withdraw())
      .to.emit(exchange.bank, 'Withdrawn')
      .withArgs(alice().address, 2n * AMOUNT)
  })
})
