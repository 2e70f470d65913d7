/** A malicious market, listed through a stolen listing role: the limits that the bank enforces whatever it submits. */
import { expect } from 'chai'
import type { Wallet } from 'ethers'
import { id } from 'ethers'
import { chain, type Exchange, pair, perpetualExchange, settle, wallet } from '../../support/exchange.ts'
import { errorOf } from '../../support/parity.ts'
import { randomOf } from '../../support/random.ts'

const malicious = wallet('malicious market')
const accomplice = wallet('accomplice')
/** Code that answers every call as a market whose mode is open and which has one operator: returns the words 0 and 1. */
const ANSWERS_READY = '0x5f5f52600160205260405ff3'
const NEVER = (1n << 256n) - 1n
const EDGES = [0n, 1n, (1n << 95n) - 1n, -(1n << 95n), NEVER, 1n << 255n, (1n << 112n) - 1n, 1n << 112n]

const delta = (account: string, amount: bigint): string =>
  `${account.toLowerCase()}${BigInt.asUintN(96, amount).toString(16).padStart(24, '0')}`

describe('a malicious market', () => {
  let exchange: Exchange
  let bank: Exchange['bank']
  let accounts: readonly { readonly address: string }[]

  /** An honest market with positions, and a second market whose calls the test makes itself. */
  beforeEach(async () => {
    exchange = await (await chain()).networkHelpers.loadFixture(perpetualExchange)
    const [alice, bob] = exchange.users as [Wallet, Wallet]
    await settle(exchange, { price: 500_000, fills: pair(alice, bob, 1000) })
    const { connection } = exchange
    const { networkHelpers: helpers } = connection
    await helpers.setCode(malicious.address, ANSWERS_READY)
    await exchange.bank.announceMarket(malicious.address)
    await exchange.bank.listMarket(malicious.address)
    await helpers.impersonateAccount(malicious.address)
    await helpers.setBalance(malicious.address, 10n ** 18n)
    bank = exchange.bank.connect(await connection.ethers.getSigner(malicious.address))
    accounts = [...exchange.users, accomplice, exchange.treasury]
  })

  const held = async (): Promise<bigint> => {
    let sum = 0n
    for (const { address } of accounts) {
      const { free, pending } = await bank.account(address)
      sum += free + pending
    }
    for (const market of await bank.markets()) {
      const { pool, fees } = await bank.market(market)
      sum += pool + fees
    }
    return sum
  }

  it('when it submits arbitrary deltas, the bank’s total and the other market’s balances stay unchanged', async () => {
    const { usdm, shared, spec, users, connection } = exchange
    const random = randomOf(Number(BigInt(id('lies')) & 0xffffn))
    const honest = await bank.market(spec.trader)
    const seen = new Set<string>()
    for (let turn = 0; turn < 300; turn++) {
      const some = (): bigint => {
        const edge = EDGES[random(EDGES.length * 2)]
        return edge ?? BigInt(random(1_000_000)) * 10n ** BigInt(random(20)) * (random(2) === 0 ? 1n : -1n)
      }
      const deltas = Array.from({ length: random(5) }, () =>
        delta(accounts[random(accounts.length)]?.address as string, BigInt.asIntN(96, some())),
      )
      const fees = random(3) === 0 ? BigInt.asUintN(256, some()) : 0n
      if (random(10) === 0) {
        const user = users[random(users.length)] as Wallet
        await connection.networkHelpers.setBalance(user.address, 10n ** 18n)
        const owner = exchange.bank.connect(user.connect(connection.ethers.provider))
        await errorOf(owner.requestWithdrawal(1n + (await bank.account(user.address)).free / 2n))
      }
      seen.add((await errorOf(bank.settleDeltas(random(2) === 0 ? 0n : NEVER, fees, deltas))) ?? 'taken')
      if (turn % 25 === 0) await errorOf(bank.collectFees(malicious.address))
    }
    expect(await held()).to.equal(await usdm.balanceOf(shared.marginBank))
    expect(await bank.market(spec.trader)).to.deep.equal(honest)
    expect([...seen]).to.include.members(['taken', 'FreeBalanceInsufficient', 'PoolInsufficient'])
  })

  it('when it debits an owner, it takes at most the sum of free and pending balance', async () => {
    const { users, connection } = exchange
    const [, , carol] = users as [Wallet, Wallet, Wallet]
    await connection.networkHelpers.setBalance(carol.address, 10n ** 18n)
    const owner = exchange.bank.connect(carol.connect(connection.ethers.provider))
    const { free: all } = await bank.account(carol.address)
    await owner.requestWithdrawal(all / 3n)
    const take = (amount: bigint) =>
      bank.settleDeltas(0, 0, [delta(carol.address, -amount), delta(accomplice.address, amount)])
    await expect(take(all + 1n))
      .to.be.revertedWithCustomError(bank, 'FreeBalanceInsufficient')
      .withArgs(carol.address, all, all + 1n)
    await take(all)
    const { free, pending } = await bank.account(carol.address)
    expect([free, pending]).to.deep.equal([0n, 0n])
  })

  it('when it debits an owner, it takes free and pending balance up to 15 s after the request and nothing after that', async () => {
    const { users, connection } = exchange
    const [, , carol] = users as [Wallet, Wallet, Wallet]
    await connection.networkHelpers.setBalance(carol.address, 10n ** 18n)
    const owner = exchange.bank.connect(carol.connect(connection.ethers.provider))
    const { free } = await bank.account(carol.address)
    await owner.requestWithdrawal(free / 2n)
    const { requestedAt } = await bank.account(carol.address)
    // With `asOf` 0 the market claims that its action precedes the request.
    const take = (amount: bigint) =>
      bank.settleDeltas(0, 0, [delta(carol.address, -amount), delta(accomplice.address, amount)])
    const { time } = connection.networkHelpers
    await time.setNextBlockTimestamp(requestedAt + 15n)
    await take(free / 2n + 1n)
    await time.setNextBlockTimestamp(requestedAt + 16n)
    await expect(take(1n))
      .to.be.revertedWithCustomError(bank, 'FreeBalanceInsufficient')
      .withArgs(carol.address, 0, 1)
    await expect(owner.withdraw())
      .to.emit(bank, 'Withdrawn')
      .withArgs(carol.address, free / 2n - 1n)
  })
})
