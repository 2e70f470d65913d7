/** A JSON-RPC node before another one, for a single process: it answers nothing, lies, repeats or loses, as the fault of the moment demands. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Transaction } from 'ethers'
import { isSend, type RpcRequest, type RpcResponse } from '../support/rpc-proxy.ts'

export type Manner = 'honest' | 'silent' | 'lying' | 'repeating' | 'dropping'

const JSON_TYPE = { 'content-type': 'application/json' }
const RECEIPT = 'eth_getTransactionReceipt'

export class FaultyNode {
  #manner: Manner = 'honest'
  readonly #target: string
  readonly #server = createServer((request, response) => {
    // A node that closes the connection without an answer does so here too.
    this.#handle(request, response).catch(() => request.socket.destroy())
  })
  /** Transactions whose receipt was there once while the node lies. */
  readonly #shown = new Set<string>()

  private constructor(target: string) {
    this.#target = target
  }

  static async start(target: string): Promise<FaultyNode> {
    const node = new FaultyNode(target)
    await new Promise<void>((resolve) => node.#server.listen(0, '127.0.0.1', resolve))
    return node
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  set(manner: Manner): void {
    this.#manner = manner
    this.#shown.clear()
  }

  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()))
    this.#server.closeAllConnections()
    await closed
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let body = ''
    for await (const chunk of request) body += String(chunk)
    const manner = this.#manner
    if (manner === 'silent') return
    const forward = async (): Promise<string> =>
      (await fetch(this.#target, { method: 'POST', headers: JSON_TYPE, body })).text()
    if (manner === 'repeating') return this.#repeat(forward, request, response)
    const answer = manner === 'honest' ? await forward() : await this.#changed(body, forward)
    response.writeHead(200, JSON_TYPE).end(answer)
  }

  /** The node gets the request twice. The first answer is lost, and the second arrives twice on the connection. */
  async #repeat(forward: () => Promise<string>, { socket }: IncomingMessage, response: ServerResponse) {
    await forward()
    const answer = await forward()
    response.writeHead(200, JSON_TYPE).end(answer, () => {
      const head = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(answer)}\r\n\r\n`
      if (!socket.destroyed) socket.write(head + answer)
    })
  }

  async #changed(body: string, forward: () => Promise<string>): Promise<string> {
    const request = JSON.parse(body) as RpcRequest & { readonly id: number }
    const answerOf = (response: RpcResponse): string =>
      JSON.stringify({ jsonrpc: '2.0', id: request.id, ...response })
    if (this.#manner === 'dropping') {
      if (!isSend(request)) return forward()
      return answerOf({ result: Transaction.from(String(request.params[0])).hash })
    }
    const isReceipt = request.method === RECEIPT
    const hash = String(request.params[0])
    if (isReceipt && this.#shown.has(hash)) return answerOf({ result: null })
    const answer = await forward()
    const { result } = JSON.parse(answer) as RpcResponse
    if (isReceipt && result !== null) this.#shown.add(hash)
    // A send answers with the receipt.
    if (isSend(request) && typeof result === 'object' && result !== null)
      this.#shown.add(String((result as { transactionHash: unknown }).transactionHash))
    return answer
  }
}
