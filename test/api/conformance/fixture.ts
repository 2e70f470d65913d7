/** Creates one order in each state by trading, before the tables are tested. */
import { expect } from 'chai'
import { type Answer, type Exchange, near } from './exchange.ts'
import type { Account, MarketFacts } from './signing.ts'

export interface Placed {
  readonly order_id: string
  readonly order_hash: string
}

export interface Fixture {
  /** Owns the orders below. */
  readonly owner: Account
  readonly other: Account
  /** The account of all other tests, so that they do not affect the orders below. */
  readonly spare: Account
  readonly market: MarketFacts
  readonly open: Placed
  readonly filled: Placed
  readonly partly: Placed
  readonly cancelled: Placed
  readonly expired: Placed
  readonly waiting: Placed
  readonly readAfter: { readonly shard_id: string; readonly shard_seq: string }
}

export const orderOf = ({ status, body }: Answer): Placed => {
  expect(status, JSON.stringify(body)).to.equal(200)
  return body.order
}

const isDone = ({ status }: { status: string }) => ['FILLED', 'CANCELLED', 'EXPIRED'].includes(status)

const isTouched = ({ filled_quantity }: { filled_quantity: number }) => filled_quantity > 0

export async function prepare(exchange: Exchange): Promise<Fixture> {
  const [owner, other, spare] = [exchange.account(0), exchange.account(1), exchange.account(2)]
  const market = await exchange.market(1)
  const price = near(market, 1000)
  const soon = Math.ceil(Date.now() / 1000) + 1
  const rest = near(market, 970)
  const expiring = orderOf(await exchange.place(owner, { price: rest, expiration_seconds: soon }))
  const opened = await exchange.place(owner, { price: rest })
  const gone = orderOf(await exchange.place(owner, { price: rest }))
  await exchange.cancel(owner, gone.order_hash, { reason: 'conformance' })
  const waiting = orderOf(
    await exchange.place(owner, { order_type: 'STOP_MARKET', trigger_price: near(market, 1100) }),
  )
  // The larger buy fills in part; its remainder is cancelled. A sell may fill one step less if the band has risen since its
  // acceptance, so the tests do not depend on the last step of sells.
  const sell = { side: 'SHORT', price, leverage: 2 }
  const partly = orderOf(await exchange.place(owner, { price, quantity: '0.03', leverage: 2 }))
  const first = orderOf(await exchange.place(other, { ...sell, quantity: '0.01' }))
  await exchange.until(owner, `/v0/orders/${partly.order_id}`, isTouched)
  await exchange.cancel(owner, partly.order_hash)
  await exchange.cancel(other, first.order_hash)
  const filled = orderOf(await exchange.place(owner, { price, quantity: '0.01', leverage: 2 }))
  const second = orderOf(await exchange.place(other, { ...sell, quantity: '0.02' }))
  await exchange.until(owner, `/v0/orders/${filled.order_id}`, isDone)
  await exchange.cancel(other, second.order_hash)
  await exchange.until(owner, `/v0/orders/${expiring.order_id}`, isDone)
  return {
    ...{ owner, other, spare, market, filled, partly, waiting },
    ...{ open: orderOf(opened), cancelled: gone, expired: expiring, readAfter: opened.body.read_after },
  }
}
