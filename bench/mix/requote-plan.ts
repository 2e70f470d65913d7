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
  /** Places some quotes of the batch, by their positions in it. */
  readonly place: (positions: readonly number[]) => Message
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
/** From the first oracle price: only market orders reach the quotes, when nothing nearer rests. */
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

type BatchOp = 'place_batch' | 'replace_batch'

function messageOf(op: BatchOp, id: string, items: readonly string[]): Message {
  const body = `{"client_request_id":"${id}","mode":"best_effort","orders":[${items.join()}]}`
  return { id, text: `{"op":"${op}","id":"${id}","body":${body}}` }
}

function batchesOf(op: BatchOp, round: number, task: RequoteTask): QuoteBatch[] {
  const { market } = task
  const orders = signRound(task, round)
  const placements = orders.map((order, quote) => labelled(order, market, quote))
  const items =
    op === 'place_batch' ? placements : orders.map((order, quote) => replacement(order, market, quote))
  return Array.from({ length: Math.ceil(items.length / BATCH) }, (_, at) => {
    const first = at * BATCH
    const chunk = items.slice(first, first + BATCH)
    return {
      ...messageOf(op, `${op}-${round}-${at}`, chunk),
      size: chunk.length,
      place: (positions) =>
        messageOf(
          'place_batch',
          `again-${round}-${at}`,
          positions.map((position) => placements[first + position] as string),
        ),
    }
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
  const { seconds, by } = task
  const rounds = Math.floor((seconds * 1_000) / INTERVAL_MS)
  const op = by === 'place' ? 'place_batch' : 'replace_batch'
  return {
    first: batchesOf('place_batch', 0, task),
    rounds: Array.from({ length: rounds }, (_, at) => ({
      at: at * INTERVAL_MS,
      cancel: by === 'place' ? cancelOf(task, at + 1) : null,
      batches: batchesOf(op, at + 1, task),
    })),
  }
}
