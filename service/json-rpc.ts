/** Sends JSON-RPC requests to a node. The provider of ethers, which decodes answers byte by byte, takes several times as long. */

/** The node's answer is an error. */
export class RpcError extends Error {
  override readonly name = 'RpcError'
  readonly code: number

  constructor({ code, message }: { readonly code: number; readonly message: string }) {
    super(message)
    this.code = code
  }
}

interface Answer {
  readonly result?: unknown
  readonly error?: { readonly code: number; readonly message: string }
}

export type Send = <Result>(method: string, params: readonly unknown[]) => Promise<Result>

export function createSend(nodeUrl: string, timeoutMs: number): Send {
  const url = new URL(nodeUrl)
  const headers = { 'content-type': 'application/json', ...credentialsOf(url) }
  url.username = ''
  url.password = ''
  return async <Result>(method: string, params: readonly unknown[]) => {
    const response = await fetch(url, {
      method: 'POST',
      headers,
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
      signal: AbortSignal.timeout(timeoutMs),
    })
    if (!response.ok) throw new Error(`the node answered ${method} with HTTP status ${response.status}`)
    const { result, error } = (await response.json()) as Answer
    if (error !== undefined) throw new RpcError(error)
    return result as Result
  }
}

/** `fetch` rejects credentials in an address. */
const credentialsOf = ({ username, password }: URL) =>
  username === '' && password === ''
    ? {}
    : { authorization: `Basic ${btoa(decodeURIComponent(`${username}:${password}`))}` }
