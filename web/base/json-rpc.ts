/** Lets the client speak to a node through anything that answers JSON-RPC requests, such as a wallet. */

export type RpcCall = (method: string, params: readonly unknown[]) => Promise<unknown>

interface Body {
  readonly id: number
  readonly method: string
  readonly params: readonly unknown[]
}

/** For the client's option `url`, which `fetchOf` ignores. */
export const NO_URL = 'http://wallet.invalid'

/** Answers what a node would, errors included. */
export const fetchOf =
  (call: RpcCall): typeof fetch =>
  async (_url, init) => {
    const { id, method, params } = JSON.parse(String(init?.body)) as Body
    try {
      return Response.json({ jsonrpc: '2.0', id, result: await call(method, params) })
    } catch (error) {
      const message = (error as Error).message || 'the request failed'
      return Response.json({ jsonrpc: '2.0', id, error: { message } })
    }
  }
