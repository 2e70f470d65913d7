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
  it('when what is pending would outgrow its field', async () => {
    const whale = await caller(exchange, wallet('whale'))
    const most = (1n << 96n) - 1n
    await exchange.usdm.mint(whale.address, most + 1n)
    await exchange.usdm.connect(whale).approve(exchange.bank, most + 1n)
    const asWhale = exchange.bank.connect(whale)
    await asWhale.deposit(most)
    await asWhale.requestWithdrawal(most)
    await asWhale.deposit(1)
    await expect(asWhale.requestWithdrawal(1))
      .to.be.revertedWithCustomError(exchange.bank, 'AmountTooLarge')
      .withArgs(most + 1n)
    await exchange.connection.networkHelpers.time.increase(16)
    await asWhale.withdraw()
    await asWhale.requestWithdrawal(1)
    await exchange.connection.networkHelpers.time.increase(16)
    await asWhale.withdraw()
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

describe('withdrawals under way and batches that need them', () => {
  let exchange: Exchange
  /** Leaves alice too little free for the trade below without what she has requested. */
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
    // The chain's time, not the machine's.
    const at = (await second()) / 1000 + 1
    await exchange.connection.networkHelpers.time.setNextBlockTimestamp(at)
    await bank.requestWithdrawal(amount)
    return at * 1000
  }
  /** A part as of `asOf`, mined in the second that follows the last block, or in `minedAt`. */
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

  it('when as of the request + G, what is pending backs the batch; the rest is paid', async () => {
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
  it('when as of a millisecond later, it does not', async () => {
    const requestedAt = await request(START_BALANCE - LEFT)
    await refusedFor(trade(requestedAt + 5_001), LEFT)
  })
  it('when as of before the request and mined long after it, it does', async () => {
    const asOf = (await second()) + 1000
    const requestedAt = await request(START_BALANCE - LEFT)
    await trade(asOf, requestedAt / 1000 + 9)
  })
  it('when the last batch that is backed is mined in its last second, the money is still there', async () => {
    const requestedAt = await request(START_BALANCE - LEFT)
    const last = requestedAt / 1000 + 15
    const bank = exchange.bank.connect(await caller(exchange, alice()))
    await exchange.connection.networkHelpers.time.setNextBlockTimestamp(last - 1)
    await expect(bank.withdraw()).to.be.revertedWithCustomError(exchange.bank, 'WithdrawalEarly')
    await trade(requestedAt + 5_000, last)
  })
  it('when requested twice, the second request backs, and holds back, everything', async () => {
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
  it('when requested twice, neither pays twice', async () => {
    await request(LEFT)
    const again = await request(LEFT)
    await exchange.connection.networkHelpers.time.increaseTo(again / 1000 + 16)
    const bank = exchange.bank.connect(await caller(exchange, alice()))
    await bank.withdraw()
    expect(await exchange.usdm.balanceOf(alice().address)).to.equal(2n * LEFT)
    await expect(bank.withdraw()).to.be.revertedWithCustomError(exchange.bank, 'NothingPending')
  })
  it('when more than free and pending is needed, it says what there was', async () => {
    const requestedAt = await request(START_BALANCE)
    const [buyer, seller] = exchange.users
    const fills = pair(buyer!, seller!, 400_000, { leverage: 10 })
    const asOf = (requestedAt + 5_000) as Millis
    const part = await buildPart(exchange, { price: 500_000, fills, asOf })
    await exchange.connection.networkHelpers.time.setNextBlockTimestamp(asOf / 1000)
    await refusedFor(exchange.trader.settleBatch(encodeSettleBatch(part, exchange.spec)), START_BALANCE)
  })
})
