/** The messages of a market maker that renews all its quotes once per auction, signed before the first is sent. */
import type { Order } from '../../domain/orders/order.ts'
import type { Seconds, Steps, Ticks } from '../../domain/units.ts'
import { accountOf, type BenchMarket, bodyOf, orderSigner, type Signed } from '../intake/orders.ts'

/** `replace`: one batch of replacements per 50 quotes. `place`: all orders of the market are cancelled by one command, then the quotes are placed. */
export const REQUOTE_WAYS = ['replace', 'place'] as const
export type RequoteWay = (typeof REQUOTE_WAYS)[number]

export interface RequoteTask {
  readonly port: number
  readonly apiKey: string
  /** The maker's place among the accounts of the measurement. */
  readonly account: number
  readonly market: BenchMarket
  /** Half of them are bids. */
  readonly quotes: number
  readonly seconds: number
  readonly by: RequoteWay
}

export interface Message {
  readonly id: string
  readonly text: string
}

export interface QuoteBatch extends Message {
  readonly size: number
}

export interface Round {
  /** Milliseconds after the start. */
  readonly at: number
  /** Is answered before the batches are sent; null if they replace the quotes. */
  readonly cancel: Message | null
  /** Sent at once. */
  readonly batches: readonly QuoteBatch[]
}

export interface RequotePlan {
  /** Places the first quotes. */
  readonly first: readonly QuoteBatch[]
  readonly rounds: readonly Round[]
}

export const INTERVAL_MS = 200
export const BATCH = 50
/** From the first oracle price: no order of the mix reaches the quotes. */
const DISTANCE = 0.01

/** Each round moves every quote by a tick, back and forth. */
function quoteOf({ oracle }: BenchMarket, quote: number, round: number): Pick<Order, 'side' | 'price'> {
  const isBid = quote % 2 === 0
  const away = Math.round(oracle * DISTANCE) + quote + (round % 2)
  return {
    side: isBid ? 'LONG' : 'SHORT',
    price: (isBid ? oracle - away : oracle + away) as Ticks,
  }
}

function signRound({ market, account, quotes }: RequoteTask, round: number): Signed[] {
  const { key, address } = accountOf(account)
  const sign = orderSigner(market)
  const terms = { marketId: market.spec.marketId, maker: address, type: 'LIMIT' as const, leverage: 2 }
  return Array.from({ length: quotes }, (_, quote) => {
    const order: Order = {
      ...terms,
      ...quoteOf(market, quote, round),
      quantity: 10 as Steps,
      trigger: 0 as Ticks,
      reduceOnly: false,
      expiration: 0 as Seconds,
      salt: BigInt(1 + round * quotes + quote),
    }
    return sign(order, key)
  })
}

/** By label, which moves to the new order: a batch that is refused leaves an order that the next round replaces. */
const labelOf = (quote: number): string => `quote-${quote}`

const labelled = (order: Signed, { spec }: BenchMarket, quote: number): string =>
  JSON.stringify({ ...JSON.parse(bodyOf(order, spec)), client_order_id: labelOf(quote) })

const replacement = (order: Signed, { spec }: BenchMarket, quote: number): string =>
  `{"cancel":{"client_order_id":"${labelOf(quote)}"},"order":${bodyOf(order, spec)},"if_filled":"reduce"}`

function batchesOf(
  op: 'place_batch' | 'replace_batch',
  round: number,
  items: readonly string[],
): QuoteBatch[] {
  return Array.from({ length: Math.ceil(items.length / BATCH) }, (_, at) => {
    const chunk = items.slice(at * BATCH, (at + 1) * BATCH)
    const id = `${op}-${round}-${at}`
    const body = `{"client_request_id":"${id}","mode":"best_effort","orders":[${chunk.join()}]}`
    return { id, size: chunk.length, text: `{"op":"${op}","id":"${id}","body":${body}}` }
  })
}

const cancelOf = ({ market }: RequoteTask, round: number): Message => {
  const id = `cancel-${round}`
  return {
    id,
    text: JSON.stringify({ op: 'cancel_all', id, body: { market_id: market.spec.marketId } }),
  }
}

export function planRequotes(task: RequoteTask): RequotePlan {
  const { market, seconds, by } = task
  const rounds = Math.floor((seconds * 1_000) / INTERVAL_MS)
  const placed = (round: number): QuoteBatch[] =>
    batchesOf(
      'place_batch',
      round,
      signRound(task, round).map((order, quote) => labelled(order, market, quote)),
    )
  const replaced = (round: number): QuoteBatch[] =>
    batchesOf(
      'replace_batch',
      round,
      signRound(task, round).map((order, quote) => replacement(order, market, quote)),
    )
  return {
    first: placed(0),
    rounds: Array.from({ length: rounds }, (_, at) => ({
      at: at * INTERVAL_MS,
      cancel: by === 'place' ? cancelOf(task, at + 1) : null,
      batches: by === 'place' ? placed(at + 1) : replaced(at + 1),
    })),
  }
}
