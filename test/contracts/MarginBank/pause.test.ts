import { expect } from 'chai'
import { keccak256, toBeHex } from 'ethers'
import { encodeSettleBatch } from '../../../domain/settlement/settlement-codec.ts'
import {
  buildPart,
  caller,
  chain,
  type Exchange,
  pair,
  perpetualExchange,
  send,
  settle,
} from '../../support/exchange.ts'
import { e18 } from '../../support/markets.ts'
import { expectRefused } from '../../support/refusals.ts'
import { audit } from '../support/audit.ts'

const DAY = 86_400
/** More than a pause could reach when it wrote the slot of every listed market. */
const MANY_MARKETS = 3_000
/** Gas that a transaction may use on MegaETH after it has read the block time. */
const GAS_AFTER_TIME = 20_000_000
/** Slot of the bank's list of markets: its length. */
const LISTED_SLOT = 4n
const ZERO = `0x${'00'.repeat(32)}`

describe('pause and unpause', () => {
  let exchange: Exchange
  const alice = () => exchange.users[0]!
  const asAlice = async () => exchange.bank.connect(await caller(exchange, alice()))
  const latest = () => exchange.connection.networkHelpers.time.latest()
  const to = (second: number | bigint) => exchange.connection.networkHelpers.time.increaseTo(second)
  const refused = (call: Promise<unknown>, error: string, ...args: unknown[]) =>
    expect(call)
      .to.be.revertedWithCustomError(exchange.bank, error)
      .withArgs(...args)
  const trade = () => ({ price: 500_000, fills: pair(alice(), exchange.users[1]!, 10) })
  const pause = async () => {
    await exchange.bank.pause()
    return Number((await exchange.bank.lastPause()).endsAt)
  }

  beforeEach(async () => {
    exchange = await (await chain()).networkHelpers.loadFixture(perpetualExchange)
  })
  afterEach(() => audit(exchange))

  it('when paused, it emits Paused with the end of the pause, three days later', async () => {
    const { bank } = exchange
    expect([...(await bank.lastPause())]).to.deep.equal([0n, 0n])
    const sent = bank.pause()
    await sent
    const startedAt = await latest()
    await expect(sent)
      .to.emit(bank, 'Paused')
      .withArgs(startedAt + 3 * DAY)
    expect([...(await bank.lastPause())]).to.deep.equal([BigInt(startedAt), BigInt(startedAt + 3 * DAY)])
    expect(await bank.isPaused()).to.equal(true)
  })
  it('when paused, deposits, payouts and settlements revert with BankPaused', async () => {
    await (await asAlice()).requestWithdrawal(e18('1'))
    const part = encodeSettleBatch(await buildPart(exchange, trade()), exchange.spec)
    const endsAt = await pause()
    const bank = await asAlice()
    await expectRefused(exchange, part, { error: 'BankPaused', args: [endsAt], contract: exchange.bank })
    await to((await latest()) + 16)
    for (const call of [
      () => bank.deposit(1),
      () => bank.depositFor(alice().address, 1),
      () => bank.depositWithPermit(1, 1, 27, ZERO, ZERO),
      () => bank.withdraw(),
    ])
      await refused(call(), 'BankPaused', endsAt)
  })
  it('when thousands of markets are listed, a pause and its end cost the same as with one, far below half of the gas that may follow a read of the block time', async () => {
    const { bank, connection, shared } = exchange
    const gasOf = async (sent: Promise<{ wait(): Promise<{ gasUsed: bigint } | null> }>) =>
      Number((await (await sent).wait())?.gasUsed)
    const cycle = async () => {
      const gas = [await gasOf(bank.pause()), await gasOf(bank.unpause())]
      await to((await latest()) + 31 * DAY)
      return gas
    }
    await cycle()
    const few = await cycle()
    const write = (slot: bigint, value: bigint) =>
      connection.networkHelpers.setStorageAt(shared.marginBank, slot, value)
    expect(await connection.networkHelpers.getStorageAt(shared.marginBank, LISTED_SLOT)).to.equal(
      toBeHex(1, 32),
    )
    await write(LISTED_SLOT, BigInt(MANY_MARKETS))
    const first = BigInt(keccak256(toBeHex(LISTED_SLOT, 32)))
    for (let index = 1; index < MANY_MARKETS; index++) await write(first + BigInt(index), BigInt(index))
    expect(await bank.markets()).to.have.length(MANY_MARKETS)
    const many = await cycle()
    expect(Math.max(...many)).to.be.below(GAS_AFTER_TIME / 2)
    expect(many).to.deep.equal(few)
    // The audit reads every listed market.
    await write(LISTED_SLOT, 1n)
  })
  it('when ether was forced upon the bank, batches settle before, after and not during a pause', async () => {
    const { bank, shared, admin } = exchange
    await admin.sendTransaction({ data: `0x73${shared.marginBank.slice(2)}ff`, value: 5n })
    await settle(exchange, trade())
    const endsAt = await pause()
    const part = encodeSettleBatch(await buildPart(exchange, trade()), exchange.spec)
    await expectRefused(exchange, part, { error: 'BankPaused', args: [endsAt], contract: bank })
    // The pause has ended by itself, and its wei is still in the bank.
    await to(endsAt)
    await settle(exchange, trade())
  })
  it('when paused, withdrawal requests and collectFees still succeed', async () => {
    await settle(exchange, trade())
    await pause()
    await (await asAlice()).requestWithdrawal(e18('1'))
    await exchange.bank.collectFees(exchange.spec.trader)
  })
  it('when three days are over, the pause ends by itself; one second earlier withdraw reverts with BankPaused', async () => {
    await (await asAlice()).requestWithdrawal(e18('1'))
    const endsAt = await pause()
    const bank = await asAlice()
    const { time } = exchange.connection.networkHelpers
    await time.setNextBlockTimestamp(endsAt - 1)
    await refused(bank.withdraw(), 'BankPaused', endsAt)
    await time.setNextBlockTimestamp(endsAt)
    await bank.withdraw()
    expect(await exchange.bank.isPaused()).to.equal(false)
    await send(exchange, encodeSettleBatch(await buildPart(exchange, trade()), exchange.spec))
  })
  it('when unpaused early, settlements succeed again and a second unpause reverts with BankNotPaused', async () => {
    await pause()
    await expect(exchange.bank.unpause()).to.emit(exchange.bank, 'Unpaused')
    expect(await exchange.bank.isPaused()).to.equal(false)
    await settle(exchange, trade())
    await refused(exchange.bank.unpause(), 'BankNotPaused')
  })
  it('when never paused, unpause reverts with BankNotPaused', () =>
    refused(exchange.bank.unpause(), 'BankNotPaused'))
  it('when a pause began less than 30 days ago, running, ended or not, pause reverts with PauseTooSoon', async () => {
    const { bank } = exchange
    const endsAt = await pause()
    const startedAt = endsAt - 3 * DAY
    const again = () => refused(bank.pause(), 'PauseTooSoon', startedAt + 30 * DAY)
    await again()
    await bank.unpause()
    await again()
    await to(endsAt)
    await again()
    const { time } = exchange.connection.networkHelpers
    await time.setNextBlockTimestamp(startedAt + 30 * DAY - 1)
    await again()
    await time.setNextBlockTimestamp(startedAt + 30 * DAY)
    await bank.pause()
  })
  it('when the caller is not the guardian, pause and unpause revert with AccessManagedUnauthorized', async () => {
    const { bank, operator } = exchange
    for (const call of [() => bank.connect(operator).pause(), () => bank.connect(operator).unpause()])
      await refused(call(), 'AccessManagedUnauthorized', operator.address)
  })
})
