import { anyUint } from '@nomicfoundation/hardhat-ethers-chai-matchers/withArgs'
import { expect } from 'chai'
import { encodeSettleBatch } from '../../../domain/settlement/settlement-codec.ts'
import type { Millis } from '../../../domain/units.ts'
import {
  buildPart,
  caller,
  chain,
  type Exchange,
  pair,
  perpetualExchange,
  START_BALANCE,
  wallet,
} from '../../support/exchange.ts'
import { e18 } from '../../support/markets.ts'
import { audit } from '../support/audit.ts'

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

  it('when requested, the amount leaves the free balance at once and is pending', async () => {
    const sent = await (await bank()).requestWithdrawal(AMOUNT)
    const requestedAt = BigInt(await latest())
    await expect(sent)
      .to.emit(exchange.bank, 'WithdrawalRequested')
      .withArgs(alice().address, AMOUNT, AMOUNT, requestedAt)
    const account = await exchange.bank.account(alice().address)
    expect([...account]).to.deep.equal([START_BALANCE - AMOUNT, AMOUNT, requestedAt])
  })
  it('when more than the free balance is requested, it reverts with FreeBalanceInsufficient', async () => {
    await expect((await bank()).requestWithdrawal(START_BALANCE + 1n))
      .to.be.revertedWithCustomError(exchange.bank, 'FreeBalanceInsufficient')
      .withArgs(alice().address, START_BALANCE, START_BALANCE + 1n)
  })
  it('when an account owns as much as the bank accepts, its pending amount grows to all of it and is paid', async () => {
    const { usdm, bank: bankContract, shared } = exchange
    const whale = await caller(exchange, wallet('whale'))
    const room = (1n << 94n) - (await usdm.balanceOf(shared.marginBank))
    await usdm.mint(whale.address, room)
    await usdm.connect(whale).approve(bankContract, room)
    const asWhale = bankContract.connect(whale)
    await asWhale.deposit(room)
    await asWhale.requestWithdrawal(room - 1n)
    await asWhale.requestWithdrawal(1)
    expect((await bankContract.account(whale.address)).pending).to.equal(room)
    await exchange.connection.networkHelpers.time.increase(16)
    await asWhale.withdraw()
    expect(await usdm.balanceOf(whale.address)).to.equal(room)
  })
  it('when the amount is zero, it reverts with AmountZero', async () => {
    await expect((await bank()).requestWithdrawal(0)).to.be.revertedWithCustomError(
      exchange.bank,
      'AmountZero',
    )
  })
  it('when nothing is pending, it reverts with NothingPending', async () => {
    await expect((await bank()).withdraw())
      .to.be.revertedWithCustomError(exchange.bank, 'NothingPending')
      .withArgs(alice().address)
  })
  it('when 15 s have passed, it reverts with WithdrawalEarly; one second later it pays', async () => {
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
  it('when requested again, the delay restarts for the whole amount', async () => {
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

describe('pending withdrawals as backing of batches', () => {
  let exchange: Exchange
  /** Leaves the trader's free balance too small for the trade below unless the pending amount backs it. */
  const LEFT = e18('1')
  const alice = () => exchange.users[0]!
  const account = () => exchange.bank.account(alice().address)
  const second = async () => (await exchange.connection.networkHelpers.time.latest()) * 1000

  beforeEach(async () => {
    exchange = await (await chain()).networkHelpers.loadFixture(perpetualExchange)
  })
  afterEach(() => audit(exchange))

  const request = async (amount: bigint) => {
    const bank = exchange.bank.connect(await caller(exchange, alice()))
    // The chain's clock, not the machine's.
    const at = (await second()) / 1000 + 1
    await exchange.connection.networkHelpers.time.setNextBlockTimestamp(at)
    await bank.requestWithdrawal(amount)
    return at * 1000
  }
  /** A part with the given `asOf`, mined in the second after the last block, or in `minedAt`. */
  const trade = async (asOf: number, minedAt?: number) => {
    const [buyer, seller] = exchange.users
    const fills = pair(buyer!, seller!, 1000, { leverage: 10 })
    const part = await buildPart(exchange, { price: 500_000, fills, asOf: asOf as Millis })
    const { time } = exchange.connection.networkHelpers
    await time.setNextBlockTimestamp(minedAt ?? Math.max(Math.ceil(asOf / 1000), (await time.latest()) + 1))
    return exchange.trader.settleBatch(encodeSettleBatch(part, exchange.spec))
  }
  const refusedFor = async (call: Promise<unknown>, available: bigint) =>
    expect(call)
      .to.be.revertedWithCustomError(exchange.bank, 'FreeBalanceInsufficient')
      .withArgs(alice().address, available, anyUint)

  it('when asOf equals the request + CANCEL_GRACE, the pending amount backs the batch and the rest is paid', async () => {
    const requestedAt = await request(START_BALANCE - LEFT)
    await trade(requestedAt + 5_000)
    const { free, pending } = await account()
    expect(free).to.equal(0n)
    expect(pending)
      .to.be.lessThan(START_BALANCE - LEFT)
      .and.greaterThan(0n)
    await exchange.connection.networkHelpers.time.increaseTo(requestedAt / 1000 + 16)
    await exchange.bank.connect(await caller(exchange, alice())).withdraw()
    expect(await exchange.usdm.balanceOf(alice().address)).to.equal(pending)
  })
  it('when asOf is 1 ms later, it reverts with FreeBalanceInsufficient', async () => {
    const requestedAt = await request(START_BALANCE - LEFT)
    await refusedFor(trade(requestedAt + 5_001), LEFT)
  })
  it('when asOf lies before the request and the batch is mined 9 s after it, the pending amount backs it', async () => {
    const asOf = (await second()) + 1000
    const requestedAt = await request(START_BALANCE - LEFT)
    await trade(asOf, requestedAt / 1000 + 9)
  })
  it('when the last backed batch is mined in its last second, the withdrawal has not been paid yet', async () => {
    const requestedAt = await request(START_BALANCE - LEFT)
    const last = requestedAt / 1000 + 15
    const bank = exchange.bank.connect(await caller(exchange, alice()))
    await exchange.connection.networkHelpers.time.setNextBlockTimestamp(last - 1)
    await expect(bank.withdraw()).to.be.revertedWithCustomError(exchange.bank, 'WithdrawalEarly')
    await trade(requestedAt + 5_000, last)
  })
  it('when requested twice, the second request’s time governs backing and payout of the whole amount', async () => {
    await request(LEFT)
    await exchange.connection.networkHelpers.time.increase(10)
    const again = await request(START_BALANCE - 2n * LEFT)
    expect((await account()).pending).to.equal(START_BALANCE - LEFT)
    await trade(again + 5_000)
    const bank = exchange.bank.connect(await caller(exchange, alice()))
    await expect(bank.withdraw())
      .to.be.revertedWithCustomError(exchange.bank, 'WithdrawalEarly')
      .withArgs(alice().address, again / 1000 + 15)
  })
  it('when requested twice, it pays the sum once', async () => {
    await request(LEFT)
    const again = await request(LEFT)
    await exchange.connection.networkHelpers.time.increaseTo(again / 1000 + 16)
    const bank = exchange.bank.connect(await caller(exchange, alice()))
    await bank.withdraw()
    expect(await exchange.usdm.balanceOf(alice().address)).to.equal(2n * LEFT)
    await expect(bank.withdraw()).to.be.revertedWithCustomError(exchange.bank, 'NothingPending')
  })
  it('when more than free and pending balance is needed, it reverts with FreeBalanceInsufficient and the available sum', async () => {
    const requestedAt = await request(START_BALANCE)
    const [buyer, seller] = exchange.users
    const fills = pair(buyer!, seller!, 400_000, { leverage: 10 })
    const asOf = (requestedAt + 5_000) as Millis
    const part = await buildPart(exchange, { price: 500_000, fills, asOf })
    await exchange.connection.networkHelpers.time.setNextBlockTimestamp(asOf / 1000)
    await refusedFor(exchange.trader.settleBatch(encodeSettleBatch(part, exchange.spec)), START_BALANCE)
  })
})
