/** The load generator. Plain sockets and requests prepared in advance keep its own CPU use low. */
import { type Answer, type Connection, connect, isAccepted, requestOf } from './connection.ts'
import { type Account, accountOf, type BenchMarket, bodyOf, signerOf } from './orders.ts'

/** The kind of request: single placements, batches of `batchOf` orders of one account and market, or cancels of prepared orders. */
export type Command = 'place' | 'cancel' | { readonly batchOf: number }

export type LoadRun = {
  readonly name: string
  readonly seconds: number
  /** The default is single placements. */
  readonly command?: Command
} & ({ readonly kind: 'closed'; readonly clients: number } | { readonly kind: 'open'; readonly rate: number })

export interface LoadTask {
  readonly port: number
  /** API keys of the accounts that place orders. */
  readonly keys: readonly string[]
  /** Index of the account of the first key; 0 by default. */
  readonly firstAccount?: number
  readonly markets: readonly BenchMarket[]
  readonly run: LoadRun
}

export interface Measured {
  readonly run: string
  /** Number of accepted requests. */
  readonly accepted: number
  /** Number of placed orders, including those that were placed to be cancelled. */
  readonly placed: number
  readonly rejected: number
  readonly per_second: number
  readonly p50_ms: number
  readonly p99_ms: number
  readonly max_ms: number
  /** CPU seconds of the generator. */
  readonly cpu_s: number
}

/** Requests per second to prepare for a closed run: more than it can send. */
const CLOSED_RATE = 6_000
/** Connections of an open run: enough that a slow response does not delay the next request. */
const OPEN_CONNECTIONS = 256

type Source = () => Buffer
let nextOrder = 0
let nextBatch = 0

/** Signs orders over all accounts and markets in turn. */
function createOrders({ keys, markets }: LoadTask, accounts: readonly Account[]) {
  const signers = markets.map(signerOf)
  /** The next `count` orders, all of one account and market. */
  return (count: number) => {
    const first = nextOrder
    nextOrder += count
    const account = Math.floor(first / count) % keys.length
    // Each account uses the next market in each round over all accounts.
    const which = (Math.floor(first / count) + Math.floor(first / count / keys.length)) % markets.length
    const sign = signers[which] as (typeof signers)[number]
    const { spec } = markets[which] as BenchMarket
    const signed = Array.from({ length: count }, (_, at) => sign(accounts[account] as Account, first + at))
    const bodies = signed.map((order) => bodyOf(order, spec))
    return { apiKey: keys[account] as string, bodies, hashes: signed.map(({ hash }) => hash) }
  }
}

type NextOrders = ReturnType<typeof createOrders>

function placement(next: NextOrders): Buffer {
  const { apiKey, bodies } = next(1)
  return requestOf('/v0/orders', apiKey, bodies[0] as string)
}

/** A batch request, with the hashes of its orders. */
function batch(next: NextOrders, size: number) {
  const { apiKey, bodies, hashes } = next(size)
  const name = `"client_request_id":"bench-${process.pid}-${nextBatch++}"`
  const body = `{${name},"mode":"best_effort","orders":[${bodies.join()}]}`
  return { apiKey, hashes, request: requestOf('/v0/orders/place/batch', apiKey, body) }
}

const CANCELLED_AT_ONCE = 50

/** Places orders and returns the requests that cancel them. */
async function cancels(next: NextOrders, count: number, connection: Connection): Promise<Buffer[]> {
  const requests: Buffer[] = []
  while (requests.length < count) {
    const { apiKey, hashes, request } = batch(next, CANCELLED_AT_ONCE)
    const answer = await new Promise<Answer>((resolve) => connection.send(request, resolve))
    if (!isAccepted(answer)) throw new Error('the placement of the orders to cancel was rejected')
    requests.push(...hashes.map((hash) => requestOf(`/v0/orders/cancel/by-hash/${hash}`, apiKey, '{}')))
  }
  return requests
}

/** Prepares all requests of the run. `placedBy` converts accepted requests to placed orders. */
async function prepare(count: number, task: LoadTask, accounts: readonly Account[], connection: Connection) {
  const next = createOrders(task, accounts)
  const { command = 'place' } = task.run
  const make = (): Buffer =>
    command === 'place' ? placement(next) : batch(next, (command as { batchOf: number }).batchOf).request
  const requests =
    command === 'cancel' ? await cancels(next, count, connection) : Array.from({ length: count }, make)
  let taken = 0
  const source: Source = () => {
    const request = requests[taken++]
    if (request === undefined)
      throw new Error(`the run needs more than the ${requests.length} prepared requests`)
    return request
  }
  const placedBy = (accepted: number): number =>
    command === 'place' ? accepted : command === 'cancel' ? requests.length : accepted * command.batchOf
  return { source, placedBy }
}

/** Messages of the generator: its requests are prepared; its measurement. */
export type LoadMessage = 'started' | Measured

interface Tally {
  readonly latencies: number[]
  rejected: number
}

function record(tally: Tally, since: number): (answer: Answer) => void {
  return (answer) => {
    if (isAccepted(answer)) tally.latencies.push(performance.now() - since)
    else tally.rejected++
  }
}

/** Each client sends its next request when the response to the previous one has arrived. */
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
            connection.send(next(), (answer) => {
              note(answer)
              step()
            })
          }
          step()
        }),
    ),
  )
}

/**
 * Requests are scheduled at a fixed rate, whether or not earlier requests have returned. Latency is measured from the
 * scheduled time.
 */
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
        connection.send(next(), (answer) => {
          note(answer)
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
  const connections = await Promise.all(Array.from({ length: clients }, () => connect(port)))
  const count = rate * run.seconds + clients
  const { source: next, placedBy } = await prepare(count, task, accounts, connections[0] as Connection)
  const tally: Tally = { latencies: [], rejected: 0 }
  process.send?.('started' satisfies LoadMessage)
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
    placed: placedBy(sorted.length),
    rejected: tally.rejected,
    per_second: Math.round(sorted.length / elapsed),
    p50_ms: quantile(sorted, 0.5),
    p99_ms: quantile(sorted, 0.99),
    max_ms: quantile(sorted, 1),
    cpu_s: (user + system) / 1e6,
  }
}

let accounts: Account[] = []

process.on('message', async (task: LoadTask) => {
  const first = task.firstAccount ?? 0
  if (accounts.length === 0) accounts = task.keys.map((_, index) => accountOf(first + index))
  process.send?.(await measure(task, accounts))
})
