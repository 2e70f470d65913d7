/** Rates of public reads, compared with an empty route of the same framework on the same processor. */
import { execFileSync, fork } from 'node:child_process'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { availableParallelism } from 'node:os'
import type { CompleteTarget } from '../intake/complete-target.ts'
import { type Connection, connect } from '../intake/connection.ts'
import { processorSeconds } from '../mix/processor-time.ts'

const CONNECTIONS = 64
/** V8 optimizes the first read for about as long. */
const WARMUP_MS = 3_000
const PATHS = ['/v0/orderbook/by-market/1?depth=20', '/v0/markets', '/v0/markets/stats', '/v0/tickers']

const requestOf = (path: string): Buffer => Buffer.from(`GET ${path} HTTP/1.1\r\nhost: bench\r\n\r\n`)

interface Rate {
  readonly rate: number
  /** Microseconds of processor time of the server per request: unlike the rate, independent of what else runs. */
  readonly us: number
}

/** Requests per second of connections that send the next request at each answer. */
async function rateOf({ port, pid }: { port: number; pid: number }, path: string, ms: number): Promise<Rate> {
  const connections = await Promise.all(Array.from({ length: CONNECTIONS }, () => connect(port)))
  const request = requestOf(path)
  let answers = 0
  let isOver = false
  const run = (connection: Connection): void =>
    connection.send(request, ({ status, body }) => {
      if (status !== 200) throw new Error(`${path} answered ${status}: ${body.slice(0, 200)}`)
      answers++
      if (!isOver) run(connection)
    })
  connections.forEach(run)
  await new Promise((resolve) => setTimeout(resolve, WARMUP_MS))
  const [before, from, usedBefore] = [answers, performance.now(), processorSeconds(pid)]
  await new Promise((resolve) => setTimeout(resolve, ms))
  const [answered, used] = [answers - before, processorSeconds(pid) - usedBefore]
  const rate = Math.round((answered * 1000) / (performance.now() - from))
  isOver = true
  for (const connection of connections) connection.close()
  return { rate, us: Number(((used * 1e6) / answered).toFixed(1)) }
}

const pin = (pid: number, cores: string): void => {
  execFileSync('taskset', ['-acp', cores, `${pid}`], { stdio: 'ignore' })
}

/** The server has the first processor; this process and the database share the remaining processors. */
export async function measureReads(target: CompleteTarget, seconds: number) {
  const cores = availableParallelism()
  const api = target.stack.api.pid() ?? 0
  const server = fork(new URL('./empty-server.ts', import.meta.url))
  const [{ port }] = (await once(server, 'message')) as [AddressInfo]
  try {
    if (cores > 1) {
      pin(api, '0')
      pin(server.pid ?? 0, '0')
      pin(process.pid, `1-${cores - 1}`)
    }
    const empty = await rateOf({ port, pid: server.pid ?? 0 }, '/empty', seconds * 1000)
    const reads: Record<string, Rate & { share: number }> = {}
    for (const path of PATHS) {
      const read = await rateOf({ port: target.port, pid: api }, path, seconds * 1000)
      reads[path] = { ...read, share: Number((empty.us / read.us).toFixed(3)) }
    }
    return { empty, reads }
  } finally {
    server.kill()
    if (cores > 1) pin(process.pid, `0-${cores - 1}`)
  }
}
