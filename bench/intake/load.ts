/** The load generator: plain sockets and requests made beforehand, so that it takes as little of the machine as it can. */
import net from 'node:net'
import { type Account, accountOf, type BenchMarket, bodyOf, signerOf } from './orders.ts'

export type LoadRun = { readonly name: string; readonly seconds: number } & (
  | { readonly kind: 'closed'; readonly clients: number }
  | { readonly kind: 'open'; readonly rate: number }
)

export interface LoadTask {
  readonly port: number
  readonly keys: readonly string[]
  readonly markets: readonly BenchMarket[]
  readonly run: LoadRun
}

export interface Measured {
  readonly run: string
  readonly accepted: number
  readonly refused: number
  readonly per_second: number
  readonly p50_ms: number
  readonly p99_ms: number
  readonly max_ms: number
  /** Of the generator itself. */
  readonly cpu_s: number
}

/** More than any closed run can place in its time. */
const CLOSED_RATE = 6_000
/** At a steady rate a client that is waiting must not hold back the next request. */
const OPEN_CONNECTIONS = 256

type Source = () => Buffer
let nextOrder = 0

/** Requests over all accounts and markets in turn, signed now. */
function prepare(count: number, { keys, markets }: LoadTask, accounts: readonly Account[]): Source {
  const signers = markets.map(signerOf)
  const requests: Buffer[] = []
  for (let at = 0; at < count; at++) {
    const order = nextOrder++
    const who = order % keys.length
    // An account moves on to the next market each time it is its turn.
    const which = (order + Math.floor(order / keys.length)) % markets.length
    const sign = signers[which] as (typeof signers)[number]
    const { spec } = markets[which] as BenchMarket
    const body = bodyOf(sign(accounts[who] as Account, order), spec)
    const head = [
      'POST /v0/orders HTTP/1.1',
      'host: bench',
      `authorization: Key ${keys[who]}`,
      'content-type: application/json',
      `content-length: ${body.length}`,
    ]
    requests.push(Buffer.from(`${head.join('\r\n')}\r\n\r\n${body}`))
  }
  let next = 0
  return () => {
    const request = requests[next++]
    if (request === undefined) throw new Error('the run needs more orders than were signed')
    return request
  }
}

interface Connection {
  send(request: Buffer, done: (isAccepted: boolean) => void): void
  close(): void
}

/** One request at a time. Answers are read as far as their status and length say. */
async function connect(port: number): Promise<Connection> {
  const socket = net.connect({ port, host: '127.0.0.1', noDelay: true })
  await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject))
  let pending: ((isAccepted: boolean) => void) | undefined
  let text = ''
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1')
    const end = text.indexOf('\r\n\r\n')
    if (end < 0) return
    const length = Number(/content-length: (\d+)/i.exec(text)?.[1])
    if (text.length < end + 4 + length) return
    const isAccepted = text.startsWith('HTTP/1.1 200')
    if (!isAccepted && process.env.BENCH_VERBOSE) console.error(text.slice(end + 4))
    text = ''
    pending?.(isAccepted)
  })
  return {
    send(request, done) {
      pending = done
      socket.write(request)
    },
    close: () => socket.destroy(),
  }
}

interface Tally {
  readonly latencies: number[]
  refused: number
}

function record(tally: Tally, since: number): (isAccepted: boolean) => void {
  return (isAccepted) => {
    if (isAccepted) tally.latencies.push(performance.now() - since)
    else tally.refused++
  }
}

/** Every client sends its next request when it has the answer to the last. */
async function closedLoop(
  connections: readonly Connection[],
  next: Source,
  seconds: number,
  tally: Tally,
): Promise<void> {
  const end = performance.now() + seconds * 1000
  await Promise.all(
    connections.map(
      (connection) =>
        new Promise<void>((resolve) => {
          const step = (): void => {
            if (performance.now() >= end) {
              resolve()
              return
            }
            const note = record(tally, performance.now())
            connection.send(next(), (isAccepted) => {
              note(isAccepted)
              step()
            })
          }
          step()
        }),
    ),
  )
}

/** Requests fall due at a fixed rate, whether or not earlier ones are answered; latency counts from when one was due. */
async function openLoop(
  connections: readonly Connection[],
  next: Source,
  { rate, seconds }: { rate: number; seconds: number },
  tally: Tally,
): Promise<void> {
  const idle = [...connections]
  const start = performance.now()
  const total = rate * seconds
  let sent = 0
  let answered = 0
  await new Promise<void>((resolve) => {
    const pump = (): void => {
      const due = Math.min(total, Math.floor(((performance.now() - start) / 1000) * rate) + 1)
      while (sent < due && idle.length > 0) {
        const connection = idle.pop() as Connection
        const note = record(tally, start + (sent++ / rate) * 1000)
        connection.send(next(), (isAccepted) => {
          note(isAccepted)
          idle.push(connection)
          if (++answered === total) {
            clearInterval(timer)
            resolve()
          }
        })
      }
    }
    const timer = setInterval(pump, 1)
  })
}

const quantile = (sorted: readonly number[], share: number): number =>
  Number((sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN).toFixed(2))

async function measure(task: LoadTask, accounts: readonly Account[]): Promise<Measured> {
  const { run, port } = task
  const clients = run.kind === 'closed' ? run.clients : OPEN_CONNECTIONS
  const rate = run.kind === 'closed' ? Math.min(CLOSED_RATE, clients * 1000) : run.rate
  const next = prepare(rate * run.seconds + clients, task, accounts)
  const connections = await Promise.all(Array.from({ length: clients }, () => connect(port)))
  const tally: Tally = { latencies: [], refused: 0 }
  const start = performance.now()
  const cpu = process.cpuUsage()
  if (run.kind === 'closed') await closedLoop(connections, next, run.seconds, tally)
  else await openLoop(connections, next, run, tally)
  const elapsed = (performance.now() - start) / 1000
  const { user, system } = process.cpuUsage(cpu)
  for (const connection of connections) connection.close()
  const sorted = tally.latencies.sort((a, b) => a - b)
  return {
    run: run.name,
    accepted: sorted.length,
    refused: tally.refused,
    per_second: Math.round(sorted.length / elapsed),
    p50_ms: quantile(sorted, 0.5),
    p99_ms: quantile(sorted, 0.99),
    max_ms: quantile(sorted, 1),
    cpu_s: (user + system) / 1e6,
  }
}

let accounts: Account[] = []

process.on('message', async (task: LoadTask) => {
  if (accounts.length === 0) accounts = task.keys.map((_, index) => accountOf(index))
  process.send?.(await measure(task, accounts))
})
