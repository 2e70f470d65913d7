/** Post-only orders, `ioc` orders and replacements on a complete exchange: what the chain settles, and what a kill leaves. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { Client } from '../../client/client.ts'
import type { PlacedOrder } from '../../client/responses.ts'
import { isDone, nearOracle, ticksFrom, useStack } from './support/stack.ts'

const MARKET = 1

describe('post-only, ioc and replacements on a complete exchange', function () {
  this.timeout(180_000)
  const exchange = useStack()

  /** The oracle price moves by many ticks a second: the prices of a test are all counted from one reading. */
  const ordersFrom = async (client: Client) => {
    const start = await nearOracle(client, MARKET)
    const { tick_size_e18_raw } = await client.marketData.market(MARKET)
    return (side: 'LONG' | 'SHORT', moved: number, quantity: string) => ({
      marketId: MARKET,
      side,
      price: ticksFrom(start, tick_size_e18_raw, moved),
      quantity,
      leverage: 2,
    })
  }
  const stateOf = ({ status, status_reason, filled_quantity }: PlacedOrder) => [
    status,
    status_reason,
    filled_quantity,
  ]
  const failure = async (
    work: Promise<unknown>,
  ): Promise<{ code: string; details: Record<string, string> }> =>
    work.then(
      () => {
        throw new Error('expected a refusal')
      },
      (error) => error,
    )

  it('when an ioc order fills in part, the chain settles the part, the remainder ends with it, and its proof verifies', async () => {
    const [maker, taker] = [exchange.trader(0), exchange.trader(1)]
    const order = await ordersFrom(maker)
    const resting = await maker.orders.place({ ...order('SHORT', 1, '0.01'), postOnly: true })
    const ioc = await taker.orders.place({ ...order('LONG', 5, '0.03'), timeInForce: 'ioc' })
    const [sold, bought] = [
      await maker.orders.waitFor(resting, isDone, 60_000),
      await taker.orders.waitFor(ioc, isDone, 60_000),
    ]
    expect(stateOf(sold)).to.deep.equal(['FILLED', 'FILLED', 0.01])
    expect(stateOf(bought)).to.deep.equal(['CANCELLED', 'IOC_REMAINDER', 0.01])
    expect(sold.fee).to.equal(0)
    expect(bought.fee).to.be.above(0)
    expect(await exchange.differences()).to.deep.equal([])
  })

  it('when a post-only order crosses a resting order, it is rejected, and accepted at the nearest price', async () => {
    const [maker, other] = [exchange.trader(2), exchange.trader(3)]
    const order = await ordersFrom(maker)
    const resting = await maker.orders.place(order('SHORT', 40, '0.01'))
    const crossing = { ...order('LONG', 45, '0.01'), postOnly: true }
    const refused = await failure(other.orders.place(crossing))
    expect(refused.code).to.equal('WOULD_TAKE')
    const nearest = refused.details.nearest_valid as string
    const placed = await other.orders.place({ ...crossing, price: nearest })
    expect(placed.order).to.include({ status: 'OPEN', post_only: true })
    await other.orders.cancel(placed.order.order_hash)
    await maker.orders.cancel(resting.order.order_hash)
  })

  it('when an order is replaced, and its replacement is reduced by what was filled, the chain settles no more than was signed', async () => {
    const [maker, taker] = [exchange.trader(4), exchange.trader(5)]
    const order = await ordersFrom(maker)
    const first = await maker.orders.place(order('LONG', -60, '0.04'))
    const moved = await maker.orders.replace({ orderHash: first.order.order_hash }, order('LONG', 3, '0.04'))
    expect(stateOf(moved.replaced)).to.deep.equal(['CANCELLED', 'REPLACED', 0])
    const sell = await taker.orders.place({
      ...order('SHORT', -5, '0.01'),
      timeInForce: 'ioc',
    })
    await taker.orders.waitFor(sell, isDone, 60_000)
    const partly = await maker.orders.waitFor(moved, ({ filled_quantity }) => filled_quantity > 0, 60_000)
    expect(partly).to.include({ status: 'OPEN', filled_quantity: 0.01 })
    const target = { orderHash: moved.order.order_hash }
    const terms = order('LONG', 4, '0.04')
    expect((await failure(maker.orders.replace(target, terms))).code).to.equal('ORDER_PARTLY_FILLED')
    const reduced = await maker.orders.replace(target, terms, { ifFilled: 'reduce' })
    expect(reduced.order).to.include({ quantity: 0.03, signed_quantity: 0.04 })
    const rest = await taker.orders.place({
      ...order('SHORT', -5, '0.05'),
      timeInForce: 'ioc',
    })
    expect(stateOf(await maker.orders.waitFor(reduced, isDone, 60_000))).to.deep.equal([
      'FILLED',
      'FILLED',
      0.03,
    ])
    expect(stateOf(await taker.orders.waitFor(rest, isDone, 60_000))).to.deep.equal([
      'CANCELLED',
      'IOC_REMAINDER',
      0.03,
    ])
    expect(await exchange.differences()).to.deep.equal([])
  })

  it('when the engine is killed between the append of a replacement and its answer, a repetition is the same replacement', async () => {
    const { engine } = exchange.stack
    const maker = exchange.trader(6)
    const order = await ordersFrom(maker)
    const old = await maker.orders.place(order('LONG', -80, '0.01'))
    const next = await maker.orders.sign(order('LONG', -70, '0.01'))
    await engine.restart('SIGTERM', { CLEARBATCH_KILL_AT: 'after-append-order_placed' })
    await engine.ready()
    const died = engine.nextEnd()
    const replaced = await maker.orders.replace({ orderHash: old.order.order_hash }, next)
    expect(await died).to.equal('SIGKILL')
    expect(replaced).to.include({ is_duplicate: true })
    expect(replaced.replaced).to.include({ order_id: old.order.order_id, status_reason: 'REPLACED' })
    const open = (await maker.orders.list({ status: 'OPEN' })).map(({ order_id }) => order_id)
    expect(open).to.deep.equal([replaced.order.order_id])
    await maker.orders.cancel(replaced.order.order_hash)
    expect(await exchange.differences()).to.deep.equal([])
  })
})
