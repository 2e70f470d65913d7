import { expect } from 'chai'
import { decodeBatchSettled } from '../../../domain/settlement/settlement-codec.ts'
import {
  addressOf,
  binaryExchange,
  chain,
  type Exchange,
  futureExchange,
  pair,
  perpetualExchange,
  START_BALANCE,
  settle,
} from '../../support/exchange.ts'
import { e18 } from '../../support/markets.ts'
import { audit } from '../support/audit.ts'

describe('settleBatch', () => {
  let exchange: Exchange

  const load = async (fixture: () => Promise<Exchange>) => {
    exchange = await (await chain()).networkHelpers.loadFixture(fixture)
    const [alice, bob, carol, dave] = exchange.users
    return { alice: alice!, bob: bob!, carol: carol!, dave: dave! }
  }
  const free = async (of: { address: string }) => (await exchange.bank.account(of.address)).free
  const position = async (of: { address: string }) => {
    const { size, entryNotional, margin, leverage } = await exchange.trader.position(of.address)
    return { size, entryNotional, margin, leverage }
  }

  afterEach(() => audit(exchange))

  describe('given a perpetual', () => {
    it('when two flat accounts trade, both positions open with their margin and each pays its own fee rate', async () => {
      const { alice, bob } = await load(perpetualExchange)
      await settle(exchange, { price: 500_000, fills: pair(alice, bob, 1000, { leverage: 10 }) })

      expect(await position(alice)).to.deep.equal({
        size: 1000n,
        entryNotional: e18('50000'),
        margin: e18('5000'),
        leverage: 10n,
      })
      expect(await position(bob)).to.deep.equal({
        size: -1000n,
        entryNotional: e18('50000'),
        margin: e18('5000'),
        leverage: 10n,
      })
      expect(await free(alice)).to.equal(START_BALANCE - e18('5025'))
      expect(await free(bob)).to.equal(START_BALANCE - e18('5005'))
      const market = await exchange.bank.market(exchange.spec.trader)
      expect([market.pool, market.fees]).to.deep.equal([e18('10000'), e18('30')])
    })

    it('when a position grows, entry and margin add up and the latest leverage applies', async () => {
      const { alice, bob } = await load(perpetualExchange)
      await settle(exchange, { price: 500_000, fills: pair(alice, bob, 1000, { leverage: 10 }) })
      await settle(exchange, { price: 510_000, fills: pair(alice, bob, 500, { leverage: 5 }) })

      expect(await position(alice)).to.deep.equal({
        size: 1500n,
        entryNotional: e18('75500'),
        margin: e18('10100'),
        leverage: 5n,
      })
    })

    it('when a position is reduced, margin and profit are paid out in proportion', async () => {
      const { alice, bob } = await load(perpetualExchange)
      await settle(exchange, { price: 500_000, fills: pair(alice, bob, 1000, { leverage: 10 }) })
      const before = await free(alice)
      await settle(exchange, { price: 510_000, fills: pair(bob, alice, 400) })

      expect(await position(alice)).to.deep.equal({
        size: 600n,
        entryNotional: e18('30000'),
        margin: e18('3000'),
        leverage: 10n,
      })
      // Margin 2000, profit 400, maker fee 1 bp of 20400.
      expect((await free(alice)) - before).to.equal(e18('2400') - e18('2.04'))
    })

    it('when a position is closed, its slot keeps only the leverage', async () => {
      const { alice, bob } = await load(perpetualExchange)
      await settle(exchange, { price: 500_000, fills: pair(alice, bob, 1000, { leverage: 10 }) })
      await settle(exchange, { price: 490_000, fills: pair(bob, alice, 1000) })
      expect(await position(alice)).to.deep.equal({ size: 0n, entryNotional: 0n, margin: 0n, leverage: 10n })
    })

    it('when an order flips a position, it closes it and opens the rest at the order’s leverage', async () => {
      const { alice, bob } = await load(perpetualExchange)
      await settle(exchange, { price: 500_000, fills: pair(alice, bob, 1000, { leverage: 10 }) })
      await settle(exchange, { price: 510_000, fills: pair(bob, alice, 1500, { leverage: 4 }) })

      expect(await position(alice)).to.deep.equal({
        size: -500n,
        entryNotional: e18('25500'),
        margin: e18('6375'),
        leverage: 4n,
      })
    })

    it('when a sell fills above its limit, its margin is based on the limit', async () => {
      const { alice, bob } = await load(perpetualExchange)
      const fills = [
        { by: alice, side: 'LONG', fill: 1000, limit: 510_000 },
        { by: bob, side: 'SHORT', fill: 1000, limit: 490_000 },
      ] as const
      await settle(exchange, { price: 500_000, fills })
      expect((await position(alice)).margin).to.equal(e18('10000'))
      expect((await position(bob)).margin).to.equal(e18('9800'))
    })

    it('when a market sell fills above the oracle price, its margin is based on the oracle price', async () => {
      const { alice, bob } = await load(perpetualExchange)
      const fills = pair(alice, bob, 1000, { limit: 0 })
      await settle(exchange, { price: 505_000, oraclePrice: e18('50000'), fills })
      expect((await position(bob)).margin).to.equal(e18('10000'))
    })

    it('when the closing fee exceeds the proceeds, it is capped at them', async () => {
      const { alice, bob } = await load(perpetualExchange)
      await settle(exchange, { price: 500_000, fills: pair(alice, bob, 1000, { leverage: 20 }) })
      const before = await free(alice)
      // A loss of 2490 out of a margin of 2500 leaves 10; the fee would be 23.755.
      const tx = await settle(exchange, {
        price: 475_100,
        fills: [
          { by: bob, side: 'LONG', fill: 1000, taker: 0 },
          { by: alice, side: 'SHORT', fill: 1000, taker: 1000 },
        ],
      })
      expect(await free(alice)).to.equal(before)
      const log = (await tx.wait())?.logs.at(-1)
      const event = decodeBatchSettled(log!.topics, log!.data, exchange.spec)
      const fill = event.fills.find(({ maker }) => maker === addressOf(alice))
      expect([fill?.isFeeCapped, fill?.fee, fill?.freeDelta]).to.deep.equal([true, e18('10'), 0n])
    })

    it('when one account has several orders in a part, all of them apply to its position', async () => {
      const { alice, bob, carol } = await load(perpetualExchange)
      await settle(exchange, { price: 500_000, fills: pair(alice, bob, 1000) })
      const fills = [
        { by: alice, side: 'SHORT', fill: 600, reduceOnly: true },
        { by: alice, side: 'SHORT', fill: 700 },
        { by: carol, side: 'LONG', fill: 800 },
        { by: bob, side: 'LONG', fill: 500 },
      ] as const
      await settle(exchange, { price: 500_000, fills })
      expect((await position(alice)).size).to.equal(-300n)
    })

    it('when an order is partly taker, the taker quantity applies to the closing share first', async () => {
      const { alice, bob } = await load(perpetualExchange)
      await settle(exchange, { price: 500_000, fills: pair(alice, bob, 1000) })
      const fills = [
        { by: bob, side: 'LONG', fill: 1500, taker: 900 },
        { by: alice, side: 'SHORT', fill: 1500, taker: 600 },
      ] as const
      await settle(exchange, { price: 500_000, fills })
      expect((await position(alice)).size).to.equal(-500n)
    })
  })

  describe('given a binary market', () => {
    it('when both sides open at 1x, together they post exactly 1 per contract', async () => {
      const { alice, bob } = await load(binaryExchange)
      await settle(exchange, { price: 370, fills: pair(alice, bob, 100, { leverage: 1 }) })
      expect((await position(alice)).margin).to.equal(e18('37'))
      expect((await position(bob)).margin).to.equal(e18('63'))
      // The taker pays 0.02 x 0.37 x 0.63 x 100.
      expect(await free(alice)).to.equal(START_BALANCE - e18('37') - e18('0.4662'))
    })

    it('when a 1x short trades below the oracle price, it settles: its margin covers the maximum loss', async () => {
      const { alice, bob } = await load(binaryExchange)
      const fills = pair(alice, bob, 100, { leverage: 1 })
      await settle(exchange, { price: 100, oraclePrice: e18('0.12'), fills })
      expect((await position(bob)).size).to.equal(-100n)
    })
  })

  describe('given a numeric future', () => {
    it('when a position closes at a loss, the loss equals the other side’s profit and the pool is empty', async () => {
      const { alice, bob } = await load(futureExchange)
      await settle(exchange, { price: 200, fills: pair(alice, bob, 1000, { leverage: 2 }) })
      await settle(exchange, { price: 190, fills: pair(bob, alice, 1000) })
      expect((await position(alice)).size).to.equal(0n)
      const { pool } = await exchange.bank.market(exchange.spec.trader)
      expect(pool).to.equal(0n)
    })
  })
})
