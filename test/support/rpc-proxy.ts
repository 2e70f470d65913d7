/** A JSON-RPC node in front of another one, whose results a test can change. */
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface RpcProxy {
  readonly url: string
  close(): Promise<void>
}

/** Returns what the proxy responds with instead of `result`. */
export type Rewrite = (method: string, result: unknown) => unknown

interface RpcResponse {
  readonly result?: unknown
  readonly error?: unknown
}

/** Single requests only: the keeper sends no batches. */
export async function startRpcProxy(target: string, rewrite: Rewrite): Promise<RpcProxy> {
  const server = createServer(async (request, response) => {
    const body = await textOf(request)
    const upstream = await fetch(target, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    })
    const answer = (await upstream.json()) as RpcResponse
    const { method } = JSON.parse(body) as { method: string }
    const rewritten =
      answer.error === undefined ? { ...answer, result: rewrite(method, answer.result) } : answer
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(rewritten))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of request) text += String(chunk)
  return text
}

const SENDS = new Set(['eth_sendRawTransactionSync', 'realtime_sendRawTransaction'])

/** A node that responds to a send before the transaction is in a block, as on chains 4326 and 6343. */
export const preconfirmed: Rewrite = (method, result) =>
  SENDS.has(method) ? { ...(result as object), blockHash: null, blockNumber: null } : result
