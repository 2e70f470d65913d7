/** The backstop of a running exchange closes its position by orders that its session key signs. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { Client } from '../../client/client.ts'
import { sessionSigner } from '../../client/signing.ts'
import { nearOracle, trade, useStack } from './support/stack.ts'

const MARKET = 1
const STEPS = 50
const QUANTITY = '0.05'
const INTERVAL_MS = 400

describe('the backstop of a running exchange', function () {
  this.timeout(120_000)
  const exchange = useStack({ backstop: true })

  it('when it has a position, its process closes it in paced pieces near the oracle price, and all balances agree', async () => {
    const { stack } = exchange
    if (stack.backstop === null) throw new Error('the stack has no backstop')
    const { account, process } = stack.backstop
    const backstop = new Client({
      ...{ baseUrl: stack.file.base_url, apiKey: account.api_key, address: account.address },
      orderSigner: sessionSigner(account.private_key),
    })
    const risk = await backstop.marketData.risk(MARKET)
    expect(risk.backstop).to.include({ capacity: 5_000_000, size: 0 })
    expect(risk.backstop?.free_balance).to.be.greaterThan(9_000_000)

    // In place of an inheritance: what it has is closed, wherever it comes from.
    const [maker, buyer] = [exchange.trader(0), exchange.trader(1)]
    const price = await nearOracle(maker, MARKET)
    const { buy } = await trade(backstop, maker, { marketId: MARKET, price, quantity: QUANTITY })
    expect(buy.status).to.equal('FILLED')
    expect(buy.signer).to.not.equal(account.address)

    await process.restart('SIGKILL', { INTERVAL_MS: `${INTERVAL_MS}`, CLOSE_SHARE: '400000' })
    const sizes = [STEPS]
    for (const deadline = Date.now() + 60_000; sizes.at(-1) !== 0 && Date.now() < deadline; ) {
      const bid = await nearOracle(buyer, MARKET, -20)
      await buyer.orders.place({ marketId: MARKET, side: 'LONG', price: bid, quantity: QUANTITY })
      await sleep(INTERVAL_MS)
      await buyer.orders.cancelAll({ marketId: MARKET })
      const [position] = await backstop.account.positions({ marketId: MARKET })
      const size = Math.round(((position?.size ?? 0) + (position?.pending_size ?? 0)) * 1_000)
      if (size !== sizes.at(-1)) sizes.push(size)
    }
    expect(sizes.at(-1), sizes.join(' ')).to.equal(0)
    expect(sizes).to.deep.equal(sizes.toSorted((a, b) => b - a))
    expect(sizes.length).to.be.greaterThan(4)

    const closing = (await backstop.orders.list({ limit: 1_000 })).filter(({ side }) => side === 'SHORT')
    for (const order of closing) {
      expect(order).to.include({ reduce_only: true, signer: buy.signer, maker: account.address })
      expect(order.quantity).to.be.at.most((0.4 * STEPS) / 1_000)
      expect(order.price).to.be.greaterThan(0.99 * Number(price))
    }
    expect(await exchange.differences()).to.deep.equal([])
    backstop.close()
  })
})
