import { expect } from 'chai'
import {
  binaryExchange,
  caller,
  chain,
  type Exchange,
  type FillInput,
  nextSecond,
  pair,
  perpetualExchange,
  START_BALANCE,
  settle,
} from '../../support/exchange.ts'
import { e18 } from '../../support/markets.ts'
import { expectPartRefused } from '../../support/refusals.ts'
import { audit } from '../support/audit.ts'

const X = e18('1')

describe('settleBatch: checks per account', () => {
  let exchange: Exchange
  const load = async (fixture: () => Promise<Exchange>) => {
    exchange = await (await chain()).networkHelpers.loadFixture(fixture)
    const [alice, bob, carol, dave] = exchange.users
    return { alice: alice!, bob: bob!, carol: carol!, dave: dave! }
  }
  afterEach(() => audit(exchange))

  describe('initial margin', () => {
    it('when a buy at 20x clears above the oracle price, it reverts with MarginInsufficient', async () => {
      const { alice, bob } = await load(perpetualExchange)
      const input = {
        price: 505_000,
        oraclePrice: e18('50000'),
        fills: pair(alice, bob, 1000, { leverage: 20 }),
      }
      // Margin 2525, loss 500 against the oracle price; 4.5 % of 50000 is required.
      await expectPartRefused(exchange, input, {
        error: 'MarginInsufficient',
        args: [alice.address, e18('2250') * X, e18('2025') * X],
      })
    })
    it('when a market sell at 20x clears below the oracle price, it reverts with MarginInsufficient', async () => {
      const { alice, bob } = await load(perpetualExchange)
      const fills: FillInput[] = [
        { by: alice, side: 'LONG', fill: 1000 },
        { by: bob, side: 'SHORT', fill: 1000, leverage: 20, limit: 0 },
      ]
      const input = { price: 495_000, oraclePrice: e18('50000'), fills }
      await expectPartRefused(exchange, input, {
        error: 'MarginInsufficient',
        args: [bob.address, e18('2250') * X, e18('1975') * X],
      })
    })
    it('when equity equals the requirement, it settles; one tick higher it reverts with MarginInsufficient', async () => {
      const { alice, bob } = await load(perpetualExchange)
      // p(1 - 1/20) = O(1 - 0.045) at O = 50000: p = 50263.157..., the tick below.
      const fills: FillInput[] = [
        { by: alice, side: 'LONG', fill: 1000, leverage: 20 },
        { by: bob, side: 'SHORT', fill: 1000, leverage: 1 },
      ]
      const at = (price: number) => ({ price, oraclePrice: e18('50000'), fills })
      await expectPartRefused(exchange, at(502_632), { error: 'MarginInsufficient' })
      await settle(exchange, at(502_631))
    })
    it('when a position is below IMR, reducing it settles and growing it reverts with MarginInsufficient', async () => {
      const { alice, bob, carol } = await load(perpetualExchange)
      const thin: FillInput[] = [
        { by: alice, side: 'LONG', fill: 1000, leverage: 20 },
        { by: bob, side: 'SHORT', fill: 1000, leverage: 1 },
      ]
      await settle(exchange, { price: 500_000, fills: thin })
      const oraclePrice = e18('49000')
      await settle(exchange, { price: 490_000, oraclePrice, fills: pair(carol, alice, 400, { leverage: 1 }) })
      await expectPartRefused(
        exchange,
        { price: 490_000, oraclePrice, fills: pair(alice, carol, 1, { leverage: 20 }) },
        { error: 'MarginInsufficient' },
      )
    })
    it('when a binary short at 5x clears far below the oracle price, it reverts with MarginInsufficient', async () => {
      const { alice, bob } = await load(binaryExchange)
      const fills: FillInput[] = [
        { by: alice, side: 'LONG', fill: 100, leverage: 1 },
        { by: bob, side: 'SHORT', fill: 100, leverage: 5 },
      ]
      const input = { price: 400, oraclePrice: e18('0.49'), fills }
      await expectPartRefused(exchange, input, {
        error: 'MarginInsufficient',
        args: [bob.address, e18('9.18') * X, e18('3') * X],
      })
      await settle(exchange, { ...input, price: 490 })
    })
  })

  it('when a binary report exceeds 1, it reverts with ReportPriceInvalid', async () => {
    const { alice, bob } = await load(binaryExchange)
    const fills = pair(alice, bob, 100, { leverage: 1 })
    await expectPartRefused(
      exchange,
      { price: 999, oraclePrice: e18('1') + 1n, fills },
      { error: 'ReportPriceInvalid', args: [e18('1') + 1n] },
    )
    await settle(exchange, { price: 999, oraclePrice: e18('1'), fills })
  })

  it('when a close has negative proceeds, it reverts with ProceedsNegative', async () => {
    const { alice, bob } = await load(perpetualExchange)
    await settle(exchange, { price: 500_000, fills: pair(alice, bob, 1000, { leverage: 20 }) })
    const fills = pair(bob, alice, 1000).map((fill) => ({ ...fill, salt: 77n }))
    const input = { price: 474_900, oraclePrice: e18('49000'), fills }
    await expectPartRefused(exchange, input, {
      error: 'ProceedsNegative',
      args: [alice.address, 77n, e18('-10')],
    })
  })

  describe('free balance', () => {
    it('when it does not cover margin and fee, it reverts with FreeBalanceInsufficient and the account', async () => {
      const { alice, bob } = await load(perpetualExchange)
      const fills = pair(alice, bob, 20_000, { leverage: 1 })
      const debit = e18('1000000') + e18('500')
      await expectPartRefused(
        exchange,
        { price: 500_000, fills },
        {
          error: 'FreeBalanceInsufficient',
          args: [alice.address, START_BALANCE, debit],
          contract: exchange.bank,
        },
      )
    })

    it('when a withdrawal is pending, it backs batches with asOf up to 5 s later, after the free balance', async () => {
      const { alice, bob } = await load(perpetualExchange)
      await exchange.bank
        .connect(await caller(exchange, alice))
        .requestWithdrawal(START_BALANCE - e18('6000'))
      const requestedAt = (await exchange.connection.networkHelpers.time.latest()) * 1000
      await exchange.connection.networkHelpers.time.increase(5)

      const fills = pair(alice, bob, 1000)
      const at = (asOf: number) => ({ price: 500_000, fills, asOf: asOf as never, observedAt: asOf })
      await expectPartRefused(exchange, at(requestedAt + 5001), {
        error: 'FreeBalanceInsufficient',
        args: [alice.address, e18('6000'), e18('10025')],
        contract: exchange.bank,
      })
      await settle(exchange, at(requestedAt + 5000))
      const { free, pending } = await exchange.bank.account(alice.address)
      expect([free, pending]).to.deep.equal([0n, START_BALANCE - e18('10025')])

      await exchange.connection.networkHelpers.time.increase(11)
      await expect(() =>
        caller(exchange, alice).then((signer) => exchange.bank.connect(signer).withdraw()),
      ).to.changeTokenBalance(
        exchange.connection.ethers,
        exchange.usdm,
        alice.address,
        START_BALANCE - e18('10025'),
      )
    })
  })

  it('when a position exceeds its slot, it reverts with PositionOutOfRange and the account', async () => {
    const { alice, bob } = await load(perpetualExchange)
    // Entry notional of 5e9 USDM.
    const fills = pair(alice, bob, 100_000_000, { leverage: 20 })
    const refusal = { error: 'PositionOutOfRange', args: [alice.address] }
    await expectPartRefused(exchange, { price: 500_000, fills }, refusal)
  })

  it('when a change of the free balance exceeds its event field, it reverts with AmountOutOfRange and the order', async () => {
    const { alice, bob } = await load(perpetualExchange)
    const fills = pair(alice, bob, 2 ** 47, { leverage: 20, salt: 77n })
    const margin = (BigInt(2 ** 47) * e18('50')) / 20n
    const fee = (BigInt(2 ** 47) * e18('50')) / 2_000n
    const refusal = { error: 'AmountOutOfRange', args: [alice.address, 77, -margin - fee] }
    await expectPartRefused(exchange, { price: 500_000, fills }, refusal)
  })

  it('when several orders together exceed the bank’s delta range, it reverts with PositionOutOfRange', async () => {
    const { alice, bob, carol } = await load(perpetualExchange)
    const { usdm, bank, shared, admin } = exchange
    const funds = e18('300000000')
    await usdm.mint(admin.address, 2n * funds)
    await usdm.approve(shared.marginBank, 2n * funds)
    for (const { address } of [alice, bob]) await bank.depositFor(address, funds)
    // Entry notional 4.9e9, later worth 4.9e10: 2^95 wei are 3.96e10, less than both halves together, more than each.
    const half = 49_000_000
    await settle(exchange, { price: 500_000, fills: pair(alice, bob, 2 * half, { leverage: 20 }) })
    await exchange.connection.networkHelpers.time.increase(1_000)
    const fills: FillInput[] = [
      { by: alice, side: 'SHORT', fill: half },
      { by: alice, side: 'SHORT', fill: half },
      { by: carol, side: 'LONG', fill: 2 * half, leverage: 20 },
    ]
    const refusal = { error: 'PositionOutOfRange', args: [alice.address] }
    await expectPartRefused(exchange, { price: 5_000_000, fills }, refusal)
  })

  it('when an account opens and closes in one part, it ends flat without margin', async () => {
    const { alice, bob, carol } = await load(perpetualExchange)
    const fills: FillInput[] = [
      { by: alice, side: 'LONG', fill: 100 },
      { by: alice, side: 'SHORT', fill: 100 },
      { by: bob, side: 'LONG', fill: 100 },
      { by: carol, side: 'SHORT', fill: 100 },
    ]
    await settle(exchange, { price: 500_000, fills })
    expect((await exchange.trader.position(alice.address)).size).to.equal(0n)
  })

  it('when a price is given, health returns equity and notional at it', async () => {
    const { alice, bob } = await load(perpetualExchange)
    await settle(exchange, { price: 500_000, fills: pair(alice, bob, 1000, { leverage: 5 }) })
    const at = async (of: { address: string }) => [
      ...(await exchange.trader.health(of.address, e18('51000'))),
    ]
    expect(await at(alice)).to.deep.equal([e18('11000') * X, e18('51000') * X])
    expect(await at(bob)).to.deep.equal([e18('9000') * X, e18('51000') * X])
  })

  it('when two parts of a batch settle, the second starts from the first part’s state', async () => {
    const { alice, bob } = await load(perpetualExchange)
    const asOf = ((await nextSecond(exchange)) * 1000) as never
    const batch = { batchId: 3, parts: 2, asOf, observedAt: asOf as number, price: 500_000 }
    await settle(exchange, { ...batch, part: 1, fills: pair(alice, bob, 100) })
    await settle(exchange, { ...batch, part: 2, fills: pair(alice, bob, 200) })
    expect((await exchange.trader.position(alice.address)).size).to.equal(300n)
  })
})
