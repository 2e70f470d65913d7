/** The backstop of a running exchange: it inherits a position in a fall of the price, and closes it by orders that its session key signs. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { afterEach, before, beforeEach, describe, it } from 'mocha'
import { Client } from '../../client/client.ts'
import { sessionSigner } from '../../client/signers/session-key-signer.ts'
import type { Price } from '../../domain/units.ts'
import { type FeedOverride, overrideFeed } from '../../stack/feed-override.ts'
import { waitFor } from '../support/patience.ts'
import { nearOracle, trade, useStack } from './support/stack.ts'

const MARKET = 1
const STEPS = 50
const QUANTITY = '0.05'
const INTERVAL_MS = 400
/** Of the position, per turn: so that a test sees several turns and their end. */
const SHARE = 0.4

describe('the backstop of a running exchange', function () {
  this.timeout(240_000)
  const exchange = useStack({ backstop: true })
  let backstop: Client
  let feed: FeedOverride

  before(async () => {
    const { stack } = exchange
    if (stack.backstop === null) throw new Error('the stack has no backstop')
    const { account, process } = stack.backstop
    backstop = new Client({
      ...{ baseUrl: stack.file.base_url, apiKey: account.api_key, address: account.address },
      orderSigner: sessionSigner(account.private_key),
    })
    await process.restart('SIGKILL', { INTERVAL_MS: `${INTERVAL_MS}`, CLOSE_SHARE: `${SHARE * 1e6}` })
  })
  // Not after all tests: the stack, which was set up before, then ends first.
  afterEach(() => feed.release())

  beforeEach(() => {
    feed = overrideFeed(exchange.stack, MARKET)
  })

  const sizeOf = async (): Promise<number> => {
    const [position] = await backstop.account.positions({ marketId: MARKET })
    return Math.round(((position?.size ?? 0) + (position?.pending_size ?? 0)) * 1_000)
  }

  /** Quotes bids just below the oracle price until the backstop is flat. Returns its sizes in steps, each once. */
  async function sizesUntilFlat(): Promise<number[]> {
    const buyer = exchange.trader(1)
    const sizes = [await sizeOf()]
    for (const deadline = Date.now() + 90_000; sizes.at(-1) !== 0 && Date.now() < deadline; ) {
      const price = await nearOracle(buyer, MARKET, -20)
      await buyer.orders.place({ marketId: MARKET, side: 'LONG', price, quantity: QUANTITY })
      await sleep(INTERVAL_MS)
      await buyer.orders.cancelAll({ marketId: MARKET })
      const size = await sizeOf()
      if (size !== sizes.at(-1)) sizes.push(size)
    }
    return sizes
  }

  it('when an account falls below its maintenance margin, the backstop inherits its position, closes it in paced pieces near the oracle price, and all balances agree', async () => {
    const risk = () => backstop.marketData.risk(MARKET)
    expect((await risk()).backstop).to.include({ capacity: 5_000_000, size: 0, free_balance: 10_000_000 })

    const [maker, victim] = [exchange.trader(0), exchange.trader(2)]
    const price = await nearOracle(maker, MARKET)
    const terms = { marketId: MARKET, price, quantity: QUANTITY }
    await victim.orders.place({ ...terms, side: 'LONG', leverage: 20 })
    await maker.orders.place({ ...terms, side: 'SHORT', leverage: 2 })
    const sizeOfVictim = async () => (await victim.account.positions({ marketId: MARKET }))[0]?.size ?? 0
    await waitFor(sizeOfVictim, (size) => size === Number(QUANTITY), { budgetMs: 30_000 })

    const { oracle_price_e18_raw } = await backstop.marketData.market(MARKET)
    const crashed = ((BigInt(oracle_price_e18_raw ?? 0) * 96n) / 100n) as Price
    feed.setPrice(crashed)
    const { inheritances } = await waitFor(risk, ({ inheritances: all }) => all.count > 0, {
      budgetMs: 60_000,
    })
    expect(inheritances).to.include({ count: 1, quantity: Number(QUANTITY), failed: 0 })
    expect(await sizeOfVictim()).to.equal(0)

    const sizes = await sizesUntilFlat()
    expect(sizes.at(-1), sizes.join(' ')).to.equal(0)
    expect(sizes).to.deep.equal(sizes.toSorted((a, b) => b - a))
    expect(sizes.length).to.be.greaterThan(4)
    const orders = await backstop.orders.list({ limit: 1_000 })
    for (const order of orders) {
      expect(order).to.include({
        side: 'SHORT',
        reduce_only: true,
        forced: false,
        maker: backstop.account.address,
      })
      expect(order.signer).to.not.equal(order.maker)
      expect(order.quantity).to.be.at.most((SHARE * STEPS) / 1_000)
      expect(order.price).to.be.at.least((0.995 * Number(crashed)) / 1e18)
    }
    expect(await exchange.differences()).to.deep.equal([])
  })

  it('when its session key trades beside the process, what it opens is closed too', async () => {
    const maker = exchange.trader(0)
    const price = await nearOracle(maker, MARKET)
    const { buy } = await trade(backstop, maker, { marketId: MARKET, price, quantity: QUANTITY })
    expect(buy.status).to.equal('FILLED')
    expect((await sizesUntilFlat()).at(-1)).to.equal(0)
    expect(await exchange.differences()).to.deep.equal([])
  })
})
