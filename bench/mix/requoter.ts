/**
 * A market maker in a process of its own that renews all its quotes once per auction over the live feed. Latency counts
 * from each round's intended time.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { WebSocket } from 'ws'
import type { StartAt } from './generator.ts'
import { type Message, planRequotes, type QuoteBatch, type RequoteTask, type Round } from './requote-plan.ts'

export interface BatchSample {
  /** Milliseconds after the start. */
  readonly at: number
  readonly ms: number
  /** Quotes that were replaced or placed. */
  readonly renewed: number
  /** Error codes, one per quote that was not renewed. */
  readonly refused: readonly string[]
}

export type RequoteMessage = 'ready' | { readonly batches: readonly BatchSample[] }

interface Answer {
  readonly type: 'result' | 'error'
  readonly id: string
  readonly data: {
    readonly details?: { readonly code?: string }
    readonly results?: readonly { readonly error?: { readonly details: { readonly code: string } } }[]
  }
}

type Call = (message: Message) => Promise<Answer>

/** Sends messages and calls back with their answers, by id. */
function connect({ port, apiKey }: RequoteTask): Promise<Call> {
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
      resolve(({ id, text }) => {
        const { promise, resolve: answered } = Promise.withResolvers<Answer>()
        waiting.set(id, answered)
        socket.send(text)
        return promise
      }),
    )
  })
}

const codeOf = ({ details }: Answer['data']): string => details?.code ?? 'UNKNOWN'

/** By position in the batch; null for a quote that was renewed. */
function refusalsOf(size: number, { type, data }: Answer): (string | null)[] {
  if (type === 'error') return Array(size).fill(codeOf(data))
  return (data.results ?? []).map(({ error }) => error?.details.code ?? null)
}

/**
 * After a refused cancel its quote is placed anyway: the label is then refused, and that counts. A quote that a market
 * order has taken counts as refused once, and is placed again.
 */
async function run(call: Call, { at, cancel, batches }: Round, start: number): Promise<BatchSample[]> {
  await sleep(start + at - performance.now())
  if (cancel !== null) await call(cancel)
  return Promise.all(
    batches.map(async (batch: QuoteBatch): Promise<BatchSample> => {
      const answer = await call(batch)
      const ms = performance.now() - start - at
      const codes = refusalsOf(batch.size, answer)
      const taken = codes.flatMap((code, position) => (code === 'ORDER_NOT_FOUND' ? [position] : []))
      if (taken.length > 0) await call(batch.place(taken))
      const refused = codes.filter((code) => code !== null)
      return { at, ms, renewed: batch.size - refused.length, refused }
    }),
  )
}

const nextMessage = <Value>(): Promise<Value> =>
  new Promise((resolve) => process.once('message', (message) => resolve(message as Value)))

const task = await nextMessage<RequoteTask>()
const { first, rounds } = planRequotes(task)
const call = await connect(task)
for (const batch of first) {
  const answer = await call(batch)
  if (answer.type === 'error') throw new Error(`the quotes were not placed: ${JSON.stringify(answer.data)}`)
}
process.send?.('ready' satisfies RequoteMessage)
const { startAt } = await nextMessage<StartAt>()
const start = performance.now() + startAt - Date.now()
const samples = await Promise.all(rounds.map((round) => run(call, round, start)))
process.send?.({ batches: samples.flat() } satisfies RequoteMessage, () => process.exit())
