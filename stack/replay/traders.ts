/** The accounts that a recorded flow is spread over: who sends which order, and what became of it. */
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
  readonly refused: Map<string, number>
  readonly cancelsRefused: Map<string, number>
  /** Milliseconds from sending an order to its answer. */
  readonly latencies: number[]
}

export interface Placing {
  readonly ref: string
  readonly at: number
  readonly side: Side
  readonly price: Ticks
  readonly quantity: Steps
  /** Milliseconds that it may wait in the book; 0 for ever. */
  readonly life: number
}

export interface Traders {
  readonly sent: Sent
  place(placing: Placing): Promise<void>
  cancel(ref: string): Promise<void>
  /** Cancels what is still in the book. */
  cancelAll(): Promise<void>
}

const LEVERAGE = 5
/** Sellers become buyers and buyers sellers so often: no account meets its own orders, and positions return to flat. */
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
    refused: new Map(),
    cancelsRefused: new Map(),
    latencies: [],
  }
  /** An order's hash once it is accepted; a cancel waits for that. */
  const placed = new Map<string, Promise<{ client: Client; hash: string } | null>>()
  let turn = 0

  const clientFor = (side: Side, at: number): Client => {
    const swapped = Math.floor(at / SWAP_MS) % 2 === 1
    const firstHalf = (side === 'LONG') !== swapped
    return clients[(firstHalf ? 0 : half) + (turn++ % half)] as Client
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
      count(sent.refused, error)
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
      count(sent.cancelsRefused, error)
    }
  }

  return {
    sent,
    async place(placing) {
      const answer = send(placing)
      if (placing.life === 0) placed.set(placing.ref, answer)
      await answer
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
