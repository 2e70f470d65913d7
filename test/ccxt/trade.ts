/** Trades with the CCXT class on a running exchange. */
import { setTimeout } from 'node:timers/promises'
import { expect } from 'chai'
import { ccxtErrors, loadClass } from '../../ccxt/build.ts'
import type { StackFile } from '../../stack/stack-file.ts'

interface CcxtOrder {
  readonly id: string
  readonly status: string
  readonly filled: number
  readonly average: number
  readonly clientOrderId?: string
}
interface CcxtPosition {
  readonly side: string
  readonly contracts: number
  readonly collateral: number
}

const BTC = 'BTC/USDM:USDM'
const FILL_MS = 60_000

export async function tradeWithCcxt(
  { accounts, base_url }: Pick<StackFile, 'accounts' | 'base_url'>,
  indexes: readonly [number, number],
): Promise<void> {
  const Clearbatch = await loadClass()
  const errors = await ccxtErrors()
  const [buyer, seller] = indexes.map((index) => {
    const account = accounts[index]
    if (account === undefined) throw new Error(`the exchange has no account ${index}`)
    const { api_key, address, private_key } = account
    const exchange = new Clearbatch({
      apiKey: api_key,
      walletAddress: address,
      privateKey: private_key,
      urls: { api: { rest: base_url } },
    })
    return async <Result>(method: string, ...args: unknown[]): Promise<Result> =>
      (await exchange[method]?.(...args)) as Result
  }) as [Caller, Caller]
  const { last, markPrice } = await buyer<{ last?: number; markPrice: number }>('fetchTicker', BTC)
  const price = last ?? markPrice
  const terms = { clientOrderId: 'ccxt', leverage: 3 }
  const bought = await buyer<CcxtOrder>('createOrder', BTC, 'limit', 'buy', 0.02, price * 1.002, terms)
  await seller('createOrder', BTC, 'limit', 'sell', 0.02, price * 0.998)
  expect(await filled(buyer, bought.id)).to.include({ status: 'closed', filled: 0.02, clientOrderId: 'ccxt' })
  expect(await buyer<unknown[]>('fetchOrderTrades', bought.id)).to.not.have.length(0)

  const [before] = await buyer<CcxtPosition[]>('fetchPositions', [BTC])
  expect(before).to.include({ side: 'long', contracts: 0.02 })
  await buyer('addMargin', BTC, 5)
  const [after] = await buyer<CcxtPosition[]>('fetchPositions', [BTC])
  expect((after as CcxtPosition).collateral - (before as CcxtPosition).collateral).to.be.closeTo(5, 0.01)

  const stop = await buyer<CcxtOrder>('createOrder', BTC, 'market', 'sell', 0.02, undefined, {
    stopLossPrice: price * 0.9,
  })
  const open = await buyer<CcxtOrder[]>('fetchOpenOrders', BTC)
  expect(open.map(({ id }) => id)).to.deep.equal([stop.id])
  const cancelled = await buyer<CcxtOrder[]>('cancelAllOrders', BTC)
  expect(cancelled.map(({ status }) => status)).to.deep.equal(['canceled'])

  const refused = await buyer('createOrder', BTC, 'limit', 'buy', 0.01, price, { leverage: 5000 }).catch(
    (error) => error,
  )
  expect(refused).to.be.instanceOf(errors.InvalidOrder)

  const bid = await seller<CcxtOrder>('createOrder', BTC, 'limit', 'buy', 0.02, price * 1.002)
  const closing = await buyer<CcxtOrder>('closePosition', BTC)
  expect(await filled(buyer, closing.id)).to.include({ status: 'closed', filled: 0.02 })
  expect(await filled(seller, bid.id)).to.include({ status: 'closed' })
}

type Caller = <Result>(method: string, ...args: unknown[]) => Promise<Result>

async function filled(call: Caller, id: string): Promise<CcxtOrder> {
  const deadline = Date.now() + FILL_MS
  for (;;) {
    const order = await call<CcxtOrder>('fetchOrder', id)
    if (order.status !== 'open' || Date.now() > deadline) return order
    await setTimeout(200)
  }
}
