/** Access to a running exchange over HTTP with its seeded accounts. */
import { Wallet } from 'ethers'
import type { Stack } from '../../../stack/stack.ts'
import { type Account, type Forgery, type MarketFacts, type OrderDraft, signed } from './signing.ts'

export interface Answer {
  readonly status: number
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies by name
  readonly body: any
  readonly headers: Headers
}

export interface RequestOptions {
  readonly body?: unknown
  /** Replaces the account's API key; null for none. */
  readonly authorization?: string | null
}

export class Exchange {
  readonly stack: Stack
  readonly accounts: readonly Account[]
  #markets = new Map<number, MarketFacts>()

  constructor(stack: Stack) {
    this.stack = stack
    this.accounts = stack.file.accounts.map(({ address, private_key, user_id, api_key }) => ({
      ...{ address: address.toLowerCase(), userId: user_id, apiKey: api_key },
      wallet: new Wallet(private_key),
    }))
  }

  account(index: number): Account {
    const account = this.accounts[index]
    if (account === undefined) throw new Error(`there is no account ${index}`)
    return account
  }

  async send(
    account: Account | null,
    method: 'GET' | 'POST',
    path: string,
    options: RequestOptions = {},
  ): Promise<Answer> {
    const key =
      options.authorization === undefined ? account && `Key ${account.apiKey}` : options.authorization
    const response = await fetch(`${this.stack.file.base_url}${path}`, {
      method,
      headers: {
        ...(key !== null && { authorization: key }),
        ...(options.body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(options.body !== undefined && {
        body: typeof options.body === 'string' ? options.body : JSON.stringify(options.body),
      }),
    })
    const text = await response.text()
    const isJson = response.headers.get('content-type')?.includes('json') ?? false
    return { status: response.status, body: isJson ? JSON.parse(text) : text, headers: response.headers }
  }

  get(account: Account | null, path: string): Promise<Answer> {
    return this.send(account, 'GET', path)
  }

  post(account: Account | null, path: string, body: unknown = {}): Promise<Answer> {
    return this.send(account, 'POST', path, { body })
  }

  /** The market, once its oracle price is known. */
  async market(marketId: number): Promise<MarketFacts> {
    const isPriced = (market: Answer['body']): boolean => market.oracle_price_e18_raw !== null
    const { body } = await this.until(null, `/v0/markets/${marketId}`, isPriced)
    this.#markets.set(marketId, body)
    return body
  }

  /** The market as last read; its price is accurate enough for orders far from it. */
  async known(marketId: number): Promise<MarketFacts> {
    return this.#markets.get(marketId) ?? this.market(marketId)
  }

  async place(account: Account, draft: OrderDraft, { marketId = 1, forgery }: Placing = {}): Promise<Answer> {
    const { body } = signed(account, await this.known(marketId), draft, forgery)
    return this.post(account, '/v0/orders', body)
  }

  async cancel(account: Account, hash: string, body: object = {}): Promise<Answer> {
    return this.post(account, `/v0/orders/cancel/by-hash/${hash}`, body)
  }

  /** Reads the path until `done`, for at most 30 s. */
  async until(
    account: Account | null,
    path: string,
    done: (body: Answer['body']) => boolean,
  ): Promise<Answer> {
    const deadline = Date.now() + 30_000
    for (;;) {
      const answer = await this.get(account, path)
      if (answer.status === 200 && done(answer.body)) return answer
      if (Date.now() > deadline) throw new Error(`${path}: ${JSON.stringify(answer.body)}`)
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }
}

interface Placing {
  readonly marketId?: number
  readonly forgery?: Forgery
}

/** A decimal text of an amount x 1e18. */
export function decimal(wei: bigint): string {
  const text = wei.toString().padStart(19, '0')
  return `${text.slice(0, -18)}.${text.slice(-18)}`.replace(/\.?0+$/, '')
}

/** The tick at `permille` of the oracle price. */
export function near(market: MarketFacts, permille: number): string {
  const tick = BigInt(market.tick_size_e18_raw)
  const price = (BigInt(market.oracle_price_e18_raw) * BigInt(permille)) / 1000n
  return decimal((price / tick) * tick)
}

export const bookmarkOf = ({ shard_id, shard_seq }: { shard_id: string; shard_seq: string }): string =>
  `read_after_shard_id=${shard_id}&read_after_shard_seq=${shard_seq}`
