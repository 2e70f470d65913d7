/** Sends JSON-RPC requests to a node. The provider of ethers, which decodes answers byte by byte, takes several times as long. */

interface ErrorObject {
  readonly code: number
  readonly message: string
  readonly data?: unknown
}

/** The node's answer is an error. */
export class RpcError extends Error {
  override readonly name = 'RpcError'
  readonly code: number
  readonly data: unknown

  constructor({ code, message, data }: ErrorObject) {
    super(message)
    this.code = code
    this.data = data
  }
}

interface Answer {
  readonly result?: unknown
  readonly error?: ErrorObject
}

/** `timeoutMs`: of this request, in place of the usual time. */
export type Send = <Result>(method: string, params: readonly unknown[], timeoutMs?: number) => Promise<Result>

export function createSend(nodeUrl: string, usualTimeoutMs: number): Send {
  const url = new URL(nodeUrl)
  const headers = { 'content-type': 'application/json', ...credentialsOf(url) }
  url.username = ''
  url.password = ''
  return async <Result>(method: string, params: readonly unknown[], timeoutMs = usualTimeoutMs) => {
    const response = await fetch(url, {
      method: 'POST',
      headers,
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
      signal: AbortSignal.timeout(timeoutMs),
    })
    const answer = response.json() as Promise<Answer>
    // Some nodes send an error of JSON-RPC with an HTTP status of its own.
    const { result, error } = await (response.ok ? answer : answer.catch((): Answer => ({})))
    if (error !== undefined) throw new RpcError(error)
    if (!response.ok) throw new Error(`the node answered ${method} with HTTP status ${response.status}`)
    return result as Result
  }
}

/** `fetch` rejects credentials in an address. */
const credentialsOf = ({ username, password }: URL) =>
  username === '' && password === ''
    ? {}
    : { authorization: `Basic ${btoa(decodeURIComponent(`${username}:${password}`))}` }
