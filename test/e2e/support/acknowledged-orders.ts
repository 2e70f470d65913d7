/** Places and cancels orders without retries, and records what the exchange has acknowledged, to be compared with what it has later. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Client } from '../../../client/client.ts'
import type { ClearbatchError } from '../../../client/errors.ts'
import type { Bookmark } from '../../../client/responses.ts'

export interface LoadTrader {
  /** Never retries: a placement without an acknowledgement is not repeated. */
  readonly once: Client
  /** Retries, and reads what the exchange has. */
  readonly patient: Client
}

interface Acknowledged {
  readonly trader: LoadTrader
  readonly orderHash: string
  /** Null if the outcome of the cancel is unknown. */
  isCancelled: boolean | null
  /** Bookmark of the last acknowledged command. */
  readAfter: Bookmark
}

export interface LoadTerms {
  readonly marketId: number
  /** So far from the market that it does not fill. */
  readonly price: string
  readonly quantity: string
}

const PAUSE_MS = 40
/** The oldest orders are cancelled, so that the accounts have margin for further ones. */
const KEPT = 20

export class AcknowledgedOrders {
  readonly #orders: Acknowledged[] = []
  readonly #times: number[] = []
  readonly #refusals = new Map<string, number>()
  readonly #stopping = new AbortController()
  readonly #loops: readonly Promise<void>[]

  constructor(traders: readonly LoadTrader[], terms: LoadTerms) {
    this.#loops = traders.map((trader) => this.#run(trader, terms))
  }

  get count(): number {
    return this.#times.length
  }

  /** Milliseconds from `start` to the first placement that was sent after it and acknowledged; null before that. */
  recovery(start: number): number | null {
    const first = this.#times.find((time) => time > start)
    return first === undefined ? null : first - start
  }

  /** Longest time without an acknowledgement since `start`. */
  longestGap(start: number): number {
    const times = [start, ...this.#times.filter((time) => time > start)]
    return Math.max(...times.slice(1).map((time, at) => time - (times[at] as number)))
  }

  /** Each code with which placements were refused since `start`, and how long after it for the last time. */
  refusals(start: number): string {
    const since = [...this.#refusals].filter(([, time]) => time > start)
    return since.map(([code, time]) => `${code} until ${time - start} ms`).join(', ')
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await Promise.all(this.#loops)
  }

  /** One line for each acknowledged command that the exchange does not have. */
  async missing(): Promise<readonly string[]> {
    const lines: string[] = []
    for (const { trader, orderHash, isCancelled, readAfter } of this.#orders) {
      const found = await trader.patient.orders
        .getByHash(orderHash, { readAfter })
        .catch((error: ClearbatchError) => error.code)
      if (typeof found === 'string') lines.push(`${orderHash} was acknowledged, now ${found}`)
      else if (isCancelled !== null && found.status !== (isCancelled ? 'CANCELLED' : 'OPEN'))
        lines.push(`${orderHash} is ${found.status}, cancel acknowledged: ${isCancelled}`)
    }
    return lines
  }

  async #run(trader: LoadTrader, terms: LoadTerms): Promise<void> {
    const open: Acknowledged[] = []
    while (!this.#stopping.signal.aborted) {
      const sent = Date.now()
      try {
        const { order, read_after } = await trader.once.orders.place({ ...terms, side: 'LONG', leverage: 2 })
        this.#times.push(sent)
        const placed: Acknowledged = {
          trader,
          orderHash: order.order_hash,
          isCancelled: false,
          readAfter: read_after,
        }
        this.#orders.push(placed)
        open.push(placed)
        if (open.length > KEPT) await this.#cancel(open.shift() as Acknowledged)
      } catch (error) {
        // Refused, or without an answer: nothing was acknowledged.
        this.#refusals.set((error as ClearbatchError).code, Date.now())
      }
      await sleep(PAUSE_MS)
    }
  }

  async #cancel(order: Acknowledged): Promise<void> {
    order.isCancelled = null
    const { read_after } = await order.trader.once.orders.cancel(order.orderHash)
    order.isCancelled = true
    order.readAfter = read_after
  }
}
