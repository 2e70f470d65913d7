/** The accounts of a replay: assigns each order to an account, sends it, and counts the results. */
import { performance } from 'node:perf_hooks'
import { Client } from '../../client/client.ts'
import { fromE18 } from '../../client/decimals.ts'
import { ClearbatchError } from '../../client/errors.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import { priceOf, quantityOf } from '../../domain/market/market.ts'
import type { Side } from '../../domain/orders/order.ts'
import type { Steps, Ticks } from '../../domain/units.ts'
import type { StackAccount } from '../stack-file.ts'

export interface Sent {
  orders: number
  accepted: number
  cancels: number
  /** By code. */
  readonly rejected: Map<string, number>
  readonly cancelsRejected: Map<string, number>
  /** Milliseconds from request to response. */
  readonly latencies: number[]
}

export interface Placing {
  readonly ref: string
  readonly at: number
  readonly side: Side
  readonly price: Ticks
  readonly quantity: Steps
  /** Milliseconds until the order expires; 0 for never. */
  readonly life: number
}

export interface Traders {
  readonly sent: Sent
  place(placing: Placing): Promise<void>
  cancel(ref: string): Promise<void>
  /** Cancels every order that is not cancelled yet. */
  cancelAll(): Promise<void>
}

const LEVERAGE = 5
/** Buying and selling accounts swap sides at this interval: an account never trades with itself, and positions return to flat. */
const SWAP_MS = 60_000

export function createTraders(baseUrl: string, spec: MarketSpec, accounts: readonly StackAccount[]): Traders {
  const clients = accounts.map(
    ({ private_key, api_key }) => new Client({ baseUrl, privateKey: private_key, apiKey: api_key }),
  )
  const half = Math.floor(clients.length / 2)
  const sent: Sent = {
    orders: 0,
    accepted: 0,
    cancels: 0,
    rejected: new Map(),
    cancelsRejected: new Map(),
    latencies: [],
  }
  /** Resolves with an order's hash when it is accepted, or null when it is rejected. A cancel waits for that. */
  const placed = new Map<string, Promise<{ client: Client; hash: string } | null>>()
  let orderCount = 0

  const clientFor = (side: Side, at: number): Client => {
    const swapped = Math.floor(at / SWAP_MS) % 2 === 1
    const firstHalf = (side === 'LONG') !== swapped
    return clients[(firstHalf ? 0 : half) + (orderCount++ % half)] as Client
  }

  const send = async ({ at, side, price, quantity, life }: Placing) => {
    const client = clientFor(side, at)
    sent.orders++
    try {
      const order = await client.orders.sign({
        marketId: spec.marketId,
        side,
        price: fromE18(priceOf(spec, price)),
        quantity: fromE18(quantityOf(spec, quantity)),
        leverage: Math.min(LEVERAGE, spec.maxLeverage),
        expiration: life === 0 ? 0 : Math.ceil((Date.now() + life) / 1000),
      })
      const began = performance.now()
      await client.orders.send(order)
      sent.latencies.push(performance.now() - began)
      sent.accepted++
      return { client, hash: order.hash }
    } catch (error) {
      count(sent.rejected, error)
      return null
    }
  }

  const cancel = async (ref: string): Promise<void> => {
    const order = await placed.get(ref)
    placed.delete(ref)
    if (!order) return
    sent.cancels++
    try {
      await order.client.orders.cancel(order.hash)
    } catch (error) {
      count(sent.cancelsRejected, error)
    }
  }

  return {
    sent,
    async place(placing) {
      const sending = send(placing)
      if (placing.life === 0) placed.set(placing.ref, sending)
      await sending
    },
    cancel,
    async cancelAll() {
      const refs = [...placed.keys()]
      const worker = async (): Promise<void> => {
        for (let ref = refs.pop(); ref !== undefined; ref = refs.pop()) await cancel(ref)
      }
      await Promise.all(Array.from({ length: 32 }, worker))
    },
  }
}

function count(counts: Map<string, number>, error: unknown): void {
  const code = error instanceof ClearbatchError ? error.code : String(error)
  counts.set(code, (counts.get(code) ?? 0) + 1)
}
