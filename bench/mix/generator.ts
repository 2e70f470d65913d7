/**
 * Sends a flow from a process of its own. Requests are signed beforehand and sent at their intended times, whatever
 * earlier answers are; latency counts from those times.
 */
import type { Order } from '../../domain/orders/order.ts'
import type { Seconds, Steps, Ticks } from '../../domain/units.ts'
import { type Answer, type Connection, connect, isAccepted, requestOf } from '../intake/connection.ts'
import { type Account, accountOf, type BenchMarket, bodyOf, orderSigner } from '../intake/orders.ts'
import { type Flow, type Kind, type MixTerms, type PlannedOrder, planMix } from './flow.ts'
import { type PricePoint, planRecorded, type RecordedTerms } from './recorded.ts'

export interface FlowTask {
  /** Ports of the API processes, which get requests in rotation. */
  readonly ports: readonly number[]
  readonly keys: readonly string[]
  readonly markets: readonly BenchMarket[]
  readonly flow: MixTerms | RecordedTerms
}

/** Sent to the generator when it has reported that it is ready. */
export interface StartAt {
  /** Milliseconds of the system's clock. */
  readonly startAt: number
}

export interface Sample {
  readonly kind: Kind
  /** Milliseconds after the start of the flow. */
  readonly at: number
  readonly ms: number
  /** Code of the error; null if the request was accepted. */
  readonly code: string | null
}

export type FlowMessage =
  | { readonly prices: readonly PricePoint[] }
  | { readonly samples: readonly Sample[]; readonly latestMs: number }

interface Request {
  readonly kind: Kind
  readonly at: number
  readonly bytes: Buffer
}

/** Enough that a slow response does not delay the next request. */
const CONNECTIONS = 512

function planFlow({ markets, flow }: FlowTask): Promise<Flow & { readonly prices?: readonly PricePoint[] }> {
  if ('file' in flow) return planRecorded(markets[0] as BenchMarket, flow)
  return Promise.resolve(planMix(markets, flow))
}

function signFlow({ keys, markets }: FlowTask, { orders, cancels }: Flow): Request[] {
  const accounts = keys.map((_, index) => accountOf(index))
  const signers = markets.map(orderSigner)
  const hashes: string[] = []
  const placements = orders.map((planned, index): Request => {
    const { kind, at, account, market } = planned
    const { spec } = markets[market] as BenchMarket
    const { key, address } = accounts[account] as Account
    const order = orderOf(planned, spec.marketId, address, BigInt(index + 1))
    const signed = (signers[market] as (typeof signers)[number])(order, key)
    hashes.push(signed.hash)
    return { kind, at, bytes: requestOf('/v0/orders', keys[account] as string, bodyOf(signed, spec)) }
  })
  const ends = cancels.map(({ kind, at, order }): Request => {
    const path = `/v0/orders/cancel/by-hash/${hashes[order]}`
    const apiKey = keys[(orders[order] as PlannedOrder).account] as string
    return { kind, at, bytes: requestOf(path, apiKey, '{}') }
  })
  return [...placements, ...ends].sort((a, b) => a.at - b.at)
}

const orderOf = (
  { side, type, price, trigger, steps, leverage }: PlannedOrder,
  marketId: Order['marketId'],
  maker: Order['maker'],
  salt: bigint,
): Order => ({
  ...{ marketId, maker, side, type, leverage, salt },
  price: price as Ticks,
  trigger: trigger as Ticks,
  quantity: steps as Steps,
  reduceOnly: false,
  expiration: 0 as Seconds,
})

function codeOf(answer: Answer): string | null {
  if (isAccepted(answer)) return null
  try {
    return (JSON.parse(answer.body) as { details?: { code?: string } }).details?.code ?? `${answer.status}`
  } catch {
    return `${answer.status}`
  }
}

/** `latestMs`: the longest delay of a request behind its intended time. */
function send(requests: readonly Request[], connections: readonly Connection[], start: number) {
  const idle = [...connections]
  const samples: Sample[] = []
  let sent = 0
  let latestMs = 0
  return new Promise<{ samples: readonly Sample[]; latestMs: number }>((resolve) => {
    const pump = (): void => {
      const now = performance.now() - start
      while (idle.length > 0) {
        const request = requests[sent]
        if (request === undefined || request.at > now) break
        sent++
        latestMs = Math.max(latestMs, now - request.at)
        const connection = idle.shift() as Connection
        connection.send(request.bytes, (answer) => {
          const { kind, at } = request
          samples.push({ kind, at, ms: performance.now() - start - at, code: codeOf(answer) })
          idle.push(connection)
          if (samples.length < requests.length) return
          clearInterval(timer)
          resolve({ samples, latestMs })
        })
      }
    }
    const timer = setInterval(pump, 1)
  })
}

const nextMessage = <Message>(): Promise<Message> =>
  new Promise((resolve) => process.once('message', (message) => resolve(message as Message)))

const task = await nextMessage<FlowTask>()
const flow = await planFlow(task)
const requests = signFlow(task, flow)
const connections = await Promise.all(
  Array.from({ length: CONNECTIONS }, (_, index) => connect(task.ports[index % task.ports.length] as number)),
)
process.send?.({ prices: flow.prices ?? [] } satisfies FlowMessage)
const { startAt } = await nextMessage<StartAt>()
const result = await send(requests, connections, performance.now() + startAt - Date.now())
process.send?.(result satisfies FlowMessage, () => {
  for (const connection of connections) connection.close()
  process.disconnect()
})
