/** JSON-RPC nodes in front of another one, whose responses a test can change, delay or withhold. */
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface RpcProxy {
  readonly url: string
  close(): Promise<void>
}

export interface RpcRequest {
  readonly method: string
  readonly params: readonly unknown[]
}

export interface RpcResponse {
  readonly result?: unknown
  readonly error?: unknown
}

/**
 * Returns what the proxy responds with; `silence`: nothing, and the connection stays open; `close`: nothing, and the connection is closed.
 * `forward` sends the request to the node.
 */
export type Respond = (
  request: RpcRequest,
  forward: () => Promise<RpcResponse>,
) => Promise<RpcResponse | 'silence' | 'close'>

/** Returns what the proxy responds with instead of `result`. */
export type Rewrite = (method: string, result: unknown) => unknown

export const startRpcProxy = (target: string, rewrite: Rewrite): Promise<RpcProxy> =>
  startRespondingProxy(target, async ({ method }, forward) => {
    const response = await forward()
    return response.error === undefined ? { ...response, result: rewrite(method, response.result) } : response
  })

/** Single requests only: the keeper sends no batches. */
export async function startRespondingProxy(target: string, respond: Respond): Promise<RpcProxy> {
  const server = createServer(async (request, response) => {
    const body = await textOf(request)
    const forward = async (): Promise<RpcResponse> => {
      const headers = { 'content-type': 'application/json' }
      return (await (await fetch(target, { method: 'POST', headers, body })).json()) as RpcResponse
    }
    // A node that closes the connection without an answer does so here too.
    const answer = await respond(JSON.parse(body) as RpcRequest, forward).catch(() => 'close' as const)
    if (answer === 'close') request.socket.destroy()
    else if (answer !== 'silence')
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
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

const SENDS = new Set(['eth_sendRawTransactionSync', 'realtime_sendRawTransaction', 'eth_sendRawTransaction'])

export const isSend = ({ method }: Pick<RpcRequest, 'method'>): boolean => SENDS.has(method)

/** A node that responds to a send before the transaction is in a block, as on chains 4326 and 6343. */
export const preconfirmed: Rewrite = (method, result) =>
  isSend({ method }) && typeof result === 'object'
    ? { ...result, blockHash: null, blockNumber: null }
    : result
