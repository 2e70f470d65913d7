/** A proxy in front of a node that fails as nodes and connections do. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface FaultyNode {
  readonly url: string
  /** Forwards this many more transactions, then one whose answer is lost, and refuses every later one. */
  loseAfter(transactions: number): void
  /** Refuses queries of logs over more blocks. */
  limitLogs(blocks: number): void
  /** Runs an action each time after the node has answered a transaction. */
  afterEachTransaction(action: () => Promise<void>): void
  heal(): void
  stop(): Promise<void>
}

interface Call {
  readonly id: number
  readonly method: string
  readonly params: readonly { readonly fromBlock?: string; readonly toBlock?: string }[]
}

const SENDING = new Set(['eth_sendTransaction', 'eth_sendRawTransaction'])

export async function startFaultyNode(target: () => string): Promise<FaultyNode> {
  let left = Number.POSITIVE_INFINITY
  let most = Number.POSITIVE_INFINITY
  let action: (() => Promise<void>) | null = null
  const forward = async (call: Call): Promise<object> => {
    const [query] = call.params ?? []
    const blocks = Number(query?.toBlock ?? 0) - Number(query?.fromBlock ?? 0) + 1
    if (call.method === 'eth_getLogs' && blocks > most)
      return failure(call, `query returns more than ${most} blocks`)
    const isSending = SENDING.has(call.method)
    if (isSending && left < 0) return failure(call, 'the connection is lost')
    if (isSending) left--
    const response = await fetch(target(), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(call),
    })
    const answer = (await response.json()) as object
    if (isSending) await action?.()
    return isSending && left < 0 ? failure(call, 'the answer is lost') : answer
  }
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const asked: Call | Call[] = JSON.parse(Buffer.concat(chunks).toString())
    const answer = Array.isArray(asked) ? await Promise.all(asked.map(forward)) : await forward(asked)
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify(answer))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    loseAfter: (transactions) => {
      left = transactions
    },
    limitLogs: (blocks) => {
      most = blocks
    },
    afterEachTransaction: (next) => {
      action = next
    },
    heal: () => {
      action = null
      left = Number.POSITIVE_INFINITY
      most = Number.POSITIVE_INFINITY
    },
    stop: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

const failure = ({ id }: Call, message: string): object => ({
  jsonrpc: '2.0',
  id,
  error: { code: -32_000, message },
})
