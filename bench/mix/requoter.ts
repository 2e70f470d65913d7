/**
 * A market maker that replaces all its quotes once per auction, over the live feed in batches of 50, from a process of its own. All replacements are
 * signed before the first is sent. Each batch is sent at its intended time, and its latency counts from that time.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { WebSocket } from 'ws'
import type { Order } from '../../domain/orders/order.ts'
import type { Seconds, Steps, Ticks } from '../../domain/units.ts'
import { accountOf, type BenchMarket, bodyOf, orderSigner, type Signed } from '../intake/orders.ts'
import type { StartAt } from './generator.ts'

export interface RequoteTask {
  readonly port: number
  readonly apiKey: string
  /** The maker's place among the accounts of the measurement. */
  readonly account: number
  readonly market: BenchMarket
  /** Half of them are bids. */
  readonly quotes: number
  readonly seconds: number
}

export interface BatchSample {
  /** Milliseconds after the start. */
  readonly at: number
  readonly ms: number
  readonly replaced: number
  /** Codes of errors, one per order that was not replaced. */
  readonly refused: readonly string[]
}

export type RequoteMessage = 'ready' | { readonly batches: readonly BatchSample[] }

const INTERVAL_MS = 200
const BATCH = 50
/** From the first oracle price: no order of the mix reaches the quotes. */
const DISTANCE = 0.01

interface Answer {
  readonly type: 'result' | 'error'
  readonly id: string
  readonly data: {
    readonly details?: { readonly code?: string }
    readonly results?: readonly { readonly error?: { readonly details: { readonly code: string } } }[]
  }
}

/** Each round moves every quote by a tick, back and forth. */
function quoteOf({ oracle }: BenchMarket, quote: number, round: number): Pick<Order, 'side' | 'price'> {
  const isBid = quote % 2 === 0
  const away = Math.round(oracle * DISTANCE) + quote + (round % 2)
  return {
    side: isBid ? 'LONG' : 'SHORT',
    price: (isBid ? oracle - away : oracle + away) as Ticks,
  }
}

function signRounds({ market, account, quotes, seconds }: RequoteTask): Signed[][] {
  const { key, address } = accountOf(account)
  const sign = orderSigner(market)
  const rounds = Math.floor((seconds * 1_000) / INTERVAL_MS)
  return Array.from({ length: rounds + 1 }, (_, round) =>
    Array.from({ length: quotes }, (_, quote) => {
      const terms = { marketId: market.spec.marketId, maker: address, type: 'LIMIT' as const, leverage: 2 }
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
    }),
  )
}

const messageOf = (id: string, op: string, orders: readonly string[]): string =>
  `{"op":"${op}","id":"${id}","body":{"client_request_id":"${id}","mode":"best_effort","orders":[${orders.join()}]}}`

const chunksOf = <Value>(values: readonly Value[]): Value[][] =>
  Array.from({ length: Math.ceil(values.length / BATCH) }, (_, at) =>
    values.slice(at * BATCH, (at + 1) * BATCH),
  )

interface Batch {
  readonly at: number
  readonly size: number
  readonly message: string
  readonly id: string
}

/** By label, which moves to the new order: a batch that is refused leaves an order that the next round replaces. */
const labelOf = (quote: number): string => `quote-${quote}`

function planBatches({ market: { spec } }: RequoteTask, rounds: readonly Signed[][]): Batch[] {
  return rounds.flatMap((signed, round) => {
    const items = signed.map(
      (order, quote) =>
        `{"cancel":{"client_order_id":"${labelOf(quote)}"},"order":${bodyOf(order, spec)},"if_filled":"reduce"}`,
    )
    return chunksOf(items).map((chunk, at): Batch => {
      const id = `requote-${round}-${at}`
      return {
        id,
        at: round * INTERVAL_MS,
        size: chunk.length,
        message: messageOf(id, 'replace_batch', chunk),
      }
    })
  })
}

/** Sends messages and calls back with their answers, by id. */
function connect({ port, apiKey }: RequoteTask): Promise<(id: string, message: string) => Promise<Answer>> {
  const waiting = new Map<string, (answer: Answer) => void>()
  const socket = new WebSocket(`ws://127.0.0.1:${port}/v0/ws`, {
    headers: { authorization: `Key ${apiKey}` },
  })
  socket.on('message', (data: Buffer) => {
    const answer = JSON.parse(data.toString()) as Answer
    waiting.get(answer.id)?.(answer)
    waiting.delete(answer.id)
  })
  return new Promise((resolve, reject) => {
    socket.once('error', reject)
    socket.once('open', () =>
      resolve((id, message) => {
        const { promise, resolve: answered } = Promise.withResolvers<Answer>()
        waiting.set(id, answered)
        socket.send(message)
        return promise
      }),
    )
  })
}

function sampleOf({ at, size }: Batch, ms: number, { type, data }: Answer): BatchSample {
  const codeOf = (details: { readonly code?: string } | undefined): string => details?.code ?? 'UNKNOWN'
  if (type === 'error') return { at, ms, replaced: 0, refused: Array(size).fill(codeOf(data.details)) }
  const refused = (data.results ?? []).flatMap(({ error }) => error?.details.code ?? [])
  return { at, ms, replaced: size - refused.length, refused }
}

const nextMessage = <Message>(): Promise<Message> =>
  new Promise((resolve) => process.once('message', (message) => resolve(message as Message)))

const task = await nextMessage<RequoteTask>()
const [first = [], ...rounds] = signRounds(task)
const batches = planBatches(task, rounds)
const call = await connect(task)
const quotes = first.map((order, quote) =>
  JSON.stringify({ ...JSON.parse(bodyOf(order, task.market.spec)), client_order_id: labelOf(quote) }),
)
for (const [at, chunk] of chunksOf(quotes).entries()) {
  const id = `place-${at}`
  const answer = await call(id, messageOf(id, 'place_batch', chunk))
  if (answer.type === 'error') throw new Error(`the quotes were not placed: ${JSON.stringify(answer.data)}`)
}
process.send?.('ready' satisfies RequoteMessage)
const { startAt } = await nextMessage<StartAt>()
const start = performance.now() + startAt - Date.now()
const samples = await Promise.all(
  batches.map(async (batch): Promise<BatchSample> => {
    await sleep(start + batch.at - performance.now())
    const answer = await call(batch.id, batch.message)
    return sampleOf(batch, performance.now() - start - batch.at, answer)
  }),
)
process.send?.({ batches: samples } satisfies RequoteMessage, () => process.exit())
