/** Rates of public reads, compared with an empty route of the same framework on the same processor. */
import { execFileSync, fork } from 'node:child_process'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { availableParallelism } from 'node:os'
import type { CompleteTarget } from '../intake/complete-target.ts'
import { type Connection, connect } from '../intake/connection.ts'

const CONNECTIONS = 64
const WARMUP_MS = 1_000
const PATHS = ['/v0/orderbook/by-market/1?depth=20', '/v0/markets', '/v0/markets/stats', '/v0/tickers']

const requestOf = (path: string): Buffer => Buffer.from(`GET ${path} HTTP/1.1\r\nhost: bench\r\n\r\n`)

/** Requests per second of connections that send the next request at each answer. */
async function rateOf(port: number, path: string, ms: number): Promise<number> {
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
  const [before, from] = [answers, performance.now()]
  await new Promise((resolve) => setTimeout(resolve, ms))
  const rate = ((answers - before) * 1000) / (performance.now() - from)
  isOver = true
  for (const connection of connections) connection.close()
  return Math.round(rate)
}

const pin = (pid: number, cores: string): void => {
  execFileSync('taskset', ['-acp', cores, `${pid}`], { stdio: 'ignore' })
}

/** The server has the first processor; this process and the database have the others. */
export async function measureReads(target: CompleteTarget, seconds: number) {
  const cores = availableParallelism()
  const api = target.stack.api.pid() ?? 0
  const empty = fork(new URL('./empty-server.ts', import.meta.url))
  const [{ port }] = (await once(empty, 'message')) as [AddressInfo]
  try {
    if (cores > 1) {
      pin(api, '0')
      pin(empty.pid ?? 0, '0')
      pin(process.pid, `1-${cores - 1}`)
    }
    const most = await rateOf(port, '/empty', seconds * 1000)
    const reads: Record<string, { rate: number; share: number }> = {}
    for (const path of PATHS) {
      const rate = await rateOf(target.port, path, seconds * 1000)
      reads[path] = { rate, share: Number((rate / most).toFixed(3)) }
    }
    return { empty: most, reads }
  } finally {
    empty.kill()
    if (cores > 1) pin(process.pid, `0-${cores - 1}`)
  }
}
