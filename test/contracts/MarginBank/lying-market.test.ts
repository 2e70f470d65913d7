/** A market that a stolen listing role has listed: what it can say to the bank, and what stands whatever it says. */
import { expect } from 'chai'
import type { Wallet } from 'ethers'
import { id } from 'ethers'
import { randomFrom } from '../../support/big-batch.ts'
import { chain, type Exchange, pair, perpetualExchange, settle, wallet } from '../../support/exchange.ts'
import { errorOf } from '../../support/parity.ts'

const liar = wallet('liar')
const accomplice = wallet('accomplice')
const NEVER = (1n << 256n) - 1n
const EDGES = [0n, 1n, (1n << 95n) - 1n, -(1n << 95n), NEVER, 1n << 255n, (1n << 112n) - 1n, 1n << 112n]

const delta = (account: string, amount: bigint): string =>
  `${account.toLowerCase()}${BigInt.asUintN(96, amount).toString(16).padStart(24, '0')}`

describe('a market that lies', () => {
  let exchange: Exchange
  let bank: Exchange['bank']
  let everyone: readonly { readonly address: string }[]

  /** Beside an honest market with positions: contract code that anyone may play. */
  beforeEach(async () => {
    exchange = await (await chain()).networkHelpers.loadFixture(perpetualExchange)
    const [alice, bob] = exchange.users as [Wallet, Wallet]
    await settle(exchange, { price: 500_000, fills: pair(alice, bob, 1000) })
    const { connection, spec } = exchange
    const { networkHelpers: helpers } = connection
    await helpers.setCode(liar.address, await connection.ethers.provider.getCode(spec.trader))
    await exchange.bank.announceMarket(liar.address)
    await exchange.bank.listMarket(liar.address)
    await helpers.impersonateAccount(liar.address)
    await helpers.setBalance(liar.address, 10n ** 18n)
    bank = exchange.bank.connect(await connection.ethers.getSigner(liar.address))
    everyone = [...exchange.users, accomplice, exchange.treasury]
  })

  const held = async (): Promise<bigint> => {
    let sum = 0n
    for (const { address } of everyone) {
      const { free, pending } = await bank.account(address)
      sum += free + pending
    }
    for (const market of await bank.markets()) {
      const { pool, fees } = await bank.market(market)
      sum += pool + fees
    }
    return sum
  }

  it('makes no money: whatever it says, the sum stands, and so does what other markets hold', async () => {
    const { usdm, shared, spec, users, connection } = exchange
    const random = randomFrom(Number(BigInt(id('lies')) & 0xffffn))
    const honest = await bank.market(spec.trader)
    const seen = new Set<string>()
    for (let turn = 0; turn < 300; turn++) {
      const some = (): bigint => {
        const edge = EDGES[random(EDGES.length * 2)]
        return edge ?? BigInt(random(1_000_000)) * 10n ** BigInt(random(20)) * (random(2) === 0 ? 1n : -1n)
      }
      const deltas = Array.from({ length: random(5) }, () =>
        delta(everyone[random(everyone.length)]?.address as string, BigInt.asIntN(96, some())),
      )
      const fees = random(3) === 0 ? BigInt.asUintN(256, some()) : 0n
      if (random(10) === 0) {
        const user = users[random(users.length)] as Wallet
        await connection.networkHelpers.setBalance(user.address, 10n ** 18n)
        const owner = exchange.bank.connect(user.connect(connection.ethers.provider))
        await errorOf(owner.requestWithdrawal(1n + (await bank.account(user.address)).free / 2n))
      }
      seen.add((await errorOf(bank.settleDeltas(random(2) === 0 ? 0n : NEVER, fees, deltas))) ?? 'taken')
      if (turn % 25 === 0) await errorOf(bank.collectFees(liar.address))
    }
    expect(await held()).to.equal(await usdm.balanceOf(shared.marginBank))
    expect(await bank.market(spec.trader)).to.deep.equal(honest)
    expect([...seen]).to.include.members(['taken', 'FreeBalanceInsufficient', 'PoolInsufficient'])
  })

  it('takes what is free, and what was asked for within 15 s; nothing that can be paid out', async () => {
    const { users, connection } = exchange
    const [, , carol] = users as [Wallet, Wallet, Wallet]
    await connection.networkHelpers.setBalance(carol.address, 10n ** 18n)
    const owner = exchange.bank.connect(carol.connect(connection.ethers.provider))
    const { free } = await bank.account(carol.address)
    await owner.requestWithdrawal(free / 2n)
    const { requestedAt } = await bank.account(carol.address)
    // It says that it speaks of a moment before the request.
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
