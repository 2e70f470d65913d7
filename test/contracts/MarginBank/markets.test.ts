import { expect } from 'chai'
import { getAddress, ZeroAddress } from 'ethers'
import { chain, type Exchange, pair, perpetualExchange, settle, word } from '../../support/exchange.ts'
import { e18 } from '../../support/markets.ts'
import { audit } from '../support/audit.ts'

/** A delta in the packed form that a market submits. */
const delta = (account: string, amount: bigint): string =>
  `${account.toLowerCase()}${BigInt.asUintN(96, amount).toString(16).padStart(24, '0')}`

describe('settleDeltas, collectFees, setTreasury', () => {
  let exchange: Exchange
  beforeEach(async () => {
    exchange = await (await chain()).networkHelpers.loadFixture(perpetualExchange)
  })
  afterEach(() => audit(exchange))

  /** The bank, called by the market. */
  const asMarket = async () => {
    const { connection, spec, bank } = exchange
    await connection.networkHelpers.impersonateAccount(spec.trader)
    await connection.networkHelpers.setBalance(spec.trader, 10n ** 18n)
    return bank.connect(await connection.ethers.getSigner(spec.trader))
  }

  describe('settleDeltas', () => {
    it('when the caller is not a listed market, it reverts with MarketNotListed', async () => {
      const { bank, admin } = exchange
      await expect(bank.settleDeltas(0, 0, []))
        .to.be.revertedWithCustomError(bank, 'MarketNotListed')
        .withArgs(admin.address)
    })
    it('when more is paid out than the pool holds, it reverts with PoolInsufficient', async () => {
      const [alice, bob] = exchange.users
      await settle(exchange, { price: 500_000, fills: pair(alice!, bob!, 10) })
      const { pool } = await exchange.bank.market(exchange.spec.trader)
      const bank = await asMarket()
      await expect(bank.settleDeltas(0, 1, [delta(alice!.address, pool)]))
        .to.be.revertedWithCustomError(bank, 'PoolInsufficient')
        .withArgs(getAddress(exchange.spec.trader), pool, pool + 1n)
    })
    it('when the pool would not fit its field, it reverts with AmountTooLarge', async () => {
      const bank = await asMarket()
      // A malicious market: fees that flow in instead of out.
      const negative = (1n << 256n) - (1n << 112n)
      const { pool } = await bank.market(exchange.spec.trader)
      await expect(bank.settleDeltas.staticCall(0, negative, []))
        .to.be.revertedWithCustomError(bank, 'AmountTooLarge')
        .withArgs(pool + (1n << 112n))
    })
    it('when a credit would not fit its field, it reverts with CreditTooLarge, which names the account', async () => {
      const bank = await asMarket()
      const [alice] = exchange.users
      const most = (1n << 95n) - 1n
      const { free } = await bank.account(alice!.address)
      const deltas = [delta(alice!.address, most), delta(alice!.address, most)]
      await expect(bank.settleDeltas.staticCall(0, 0, deltas))
        .to.be.revertedWithCustomError(bank, 'CreditTooLarge')
        .withArgs(alice!.address, free + 2n * most)
      // The largest balance fits. Debits of the same part bring it back.
      const rest = 2n * most + 1n - free - most
      const fits = [most, rest, -most, -rest].map((amount) => delta(alice!.address, amount))
      await bank.settleDeltas.staticCall(0, 0, fits)
    })
  })

  describe('collectFees', () => {
    it('when fees have accrued, it credits them to the treasury and emits FeesCollected', async () => {
      const { bank, spec, treasury, users } = exchange
      await settle(exchange, { price: 500_000, fills: pair(users[0]!, users[1]!, 1000) })
      await expect(bank.collectFees(spec.trader))
        .to.emit(bank, 'FeesCollected')
        .withArgs(getAddress(spec.trader), treasury.address, e18('30'))
      expect((await bank.account(treasury.address)).free).to.equal(e18('30'))
      expect((await bank.market(spec.trader)).fees).to.equal(0n)
    })
    it('when there are no fees, it reverts with AmountZero', async () => {
      const { bank, spec } = exchange
      await expect(bank.collectFees(spec.trader)).to.be.revertedWithCustomError(bank, 'AmountZero')
    })
  })

  describe('setTreasury', () => {
    it('when changed, it emits TreasuryChanged and returns the new treasury', async () => {
      const { bank, treasury, admin } = exchange
      await expect(bank.setTreasury(admin.address))
        .to.emit(bank, 'TreasuryChanged')
        .withArgs(treasury.address, admin.address)
      expect(await bank.treasury()).to.equal(admin.address)
    })
    it('when the treasury is the zero address or the caller lacks the role, it reverts with AccountZero or AccessManagedUnauthorized', async () => {
      const { bank, operator } = exchange
      await expect(bank.setTreasury(ZeroAddress)).to.be.revertedWithCustomError(bank, 'AccountZero')
      await expect(bank.connect(operator).setTreasury(operator.address)).to.be.revertedWithCustomError(
        bank,
        'AccessManagedUnauthorized',
      )
    })
  })

  it('returns its token, and packs deltas as documented', async () => {
    expect((await exchange.bank.token()).toLowerCase()).to.equal(exchange.shared.usdm)
    expect(delta(`0x${'11'.repeat(20)}`, -1n)).to.equal(`0x${'11'.repeat(20)}${'ff'.repeat(12)}`)
    expect(word(0)).to.have.length(66)
  })
})
