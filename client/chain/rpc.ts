/** Node calls that deposits and withdrawals need. */
import { ClearbatchError, errorWithoutResponse } from '../errors.ts'
import { waitFor } from '../wait-for.ts'

const TIMEOUT_MS = 10_000
const RECEIPT_BUDGET_MS = 120_000

export interface Receipt {
  readonly transactionHash: string
  readonly status: string
}

/** A node's error response; the call had no effect. */
interface Answer {
  readonly result?: unknown
  readonly error?: { readonly message: string; readonly data?: unknown }
}

/** The only method with an effect. */
const SENDING = 'eth_sendRawTransaction'

export class RpcError extends Error {
  override readonly name = 'RpcError'
  readonly data: unknown

  constructor(method: string, { message, data }: { message: string; data?: unknown }) {
    super(`the node refuses ${method}: ${message}`)
    this.data = data
  }
}

export class Rpc {
  readonly #url: string
  readonly #fetch: typeof fetch
  #ids = 0

  constructor(url: string, send: typeof fetch = fetch) {
    this.#url = url
    this.#fetch = send
  }

  /**
   * Calls a method. Throws `RpcError` if the node rejects the call, and `ClearbatchError` if it does not respond.
   */
  async call<Result>(method: string, ...params: readonly unknown[]): Promise<Result> {
    const body = JSON.stringify({ jsonrpc: '2.0', id: ++this.#ids, method, params })
    const answer = await this.#post(method, body)
    if (answer.error !== undefined) throw new RpcError(method, answer.error)
    return answer.result as Result
  }

  async number(method: string, ...params: readonly unknown[]): Promise<bigint> {
    return BigInt(await this.call<string>(method, ...params))
  }

  async chainId(): Promise<number> {
    return Number(await this.number('eth_chainId'))
  }

  /** Result of a contract call at the latest block. */
  async read(to: string, data: string): Promise<string> {
    return this.call('eth_call', { to, data }, 'latest')
  }

  /**
   * Returns the receipt once the transaction is mined. After two minutes it throws with an unknown outcome.
   */
  async receipt(hash: string): Promise<Receipt> {
    const read = () => this.call<Receipt | null>('eth_getTransactionReceipt', hash).catch(nullIfSilent)
    const receipt = await waitFor(read, (found) => found !== null, {
      budgetMs: RECEIPT_BUDGET_MS,
      everyMs: 200,
    }).catch(() => {
      throw unmined(hash)
    })
    return receipt as Receipt
  }

  async #post(method: string, body: string): Promise<Answer> {
    try {
      const response = await this.#fetch(this.#url, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body,
        signal: AbortSignal.timeout(TIMEOUT_MS),
      })
      const text = await response.text()
      if (!response.ok) throw new Error(`HTTP ${response.status}`)
      return JSON.parse(text)
    } catch (cause) {
      // Only the origin is shown, because the path of a node URL may be a secret.
      const details = { node: URL.canParse(this.#url) ? new URL(this.#url).origin : 'its URL' }
      throw errorWithoutResponse(cause, { details, outcome: method === SENDING ? 'unknown' : null })
    }
  }
}

/** Null if the node did not respond; a later attempt may succeed. */
function nullIfSilent(error: unknown): null {
  if (error instanceof ClearbatchError) return null
  throw error
}

const unmined = (hash: string): ClearbatchError =>
  new ClearbatchError(
    `transaction ${hash} was sent and is not mined after ${RECEIPT_BUDGET_MS / 1000} s; it may still be mined`,
    {
      code: 'CLIENT_NOT_MINED',
      outcome: 'unknown',
      retryable: false,
      details: { tx_hash: hash },
    },
  )
