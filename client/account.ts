/** Reads of one account: balance, positions, liquidations, and the fills and events of all its orders. */

import type { HttpSession } from './http-session.ts'
import type { EquityPage, ProfitPage, RecordedPosition } from './position-history.ts'
import {
  bookmarkQuery,
  type ListOptions,
  listQuery,
  type Page,
  type RangeOptions,
  type ReadOptions,
  rangeQuery,
} from './queries.ts'
import type {
  ApiKey,
  Fill,
  LiquidationDecision,
  MarginBalance,
  Me,
  OrderEvent,
  OrderEventKind,
  Position,
  RateLimit,
  Transaction,
  TransactionType,
  WithdrawalPage,
} from './responses.ts'

export interface EventListOptions extends RangeOptions {
  readonly marketId?: number
  readonly kind?: OrderEventKind
}

export interface TransactionListOptions extends ReadOptions {
  readonly marketId?: number
  readonly type?: TransactionType
  /** Time bounds, ISO 8601: inclusive for the first transaction, exclusive for the last. */
  readonly from?: string
  readonly to?: string
  readonly limit?: number
  /** Last transaction of the previous page; null or absent for the newest page. */
  readonly after?: Pick<Transaction, 'created_at' | 'id'> | null
}

export class Account {
  readonly #http: HttpSession
  readonly #address: string | null
  #userId: number | null = null

  /** `address` is null for a client without the account's key. */
  constructor(http: HttpSession, address: string | null) {
    this.#http = http
    this.#address = address
  }

  get address(): string {
    return this.#address ?? missingOption('privateKey')
  }

  /** Fails with status 404 before the account's first deposit or login. */
  async userId(): Promise<number> {
    this.#userId ??= (await this.#http.get<{ user_id: number }>(`/v0/users/by-eoa/${this.address}`)).user_id
    return this.#userId
  }

  async balance(options: ReadOptions = {}): Promise<MarginBalance> {
    const path = `/v0/balance/${await this.userId()}/margin`
    return (await this.#http.get<{ balance: MarginBalance }>(path, bookmarkQuery(options))).balance
  }

  async positions(options: ReadOptions & { readonly marketId?: number } = {}): Promise<readonly Position[]> {
    const path = `/v0/positions/by-user/${await this.userId()}`
    const query = { market_id: options.marketId, ...bookmarkQuery(options) }
    return (await this.#http.get<{ positions: readonly Position[] }>(path, query)).positions
  }

  /** Decisions on liquidations of the account, and on deleveragings in which it is a counterparty. */
  async liquidationPage(
    options: RangeOptions & { readonly marketId?: number } = {},
  ): Promise<Page & { steps: readonly LiquidationDecision[] }> {
    return this.#http.get('/v0/account/liquidations', { market_id: options.marketId, ...rangeQuery(options) })
  }

  async fills(options: ListOptions = {}): Promise<readonly Fill[]> {
    return (await this.fillPage(options)).fills
  }

  async fillPage(options: ListOptions = {}): Promise<Page & { fills: readonly Fill[] }> {
    return this.#http.get(`/v0/fills/by-user/${await this.userId()}`, listQuery(options))
  }

  /** The fills as a CSV file: at most 100,000 fills, or `limit` if it is set. */
  async fillsCsv(options: ListOptions = {}): Promise<string> {
    return this.#http.send({
      method: 'GET',
      path: `/v0/fills/by-user/${await this.userId()}`,
      query: listQuery(options),
      idempotent: true,
      accept: 'text/csv',
      timeoutMs: CSV_TIMEOUT_MS,
    })
  }

  /** Transactions that changed the account's collateral, newest first. An empty page ends the list. */
  async transactions(options: TransactionListOptions = {}): Promise<readonly Transaction[]> {
    const query = transactionQuery(options)
    return (await this.#http.get<{ transactions: readonly Transaction[] }>(TRANSACTIONS, query)).transactions
  }

  /** The transactions as a CSV file: at most 100,000 transactions, or `limit` if it is set. */
  async transactionsCsv(options: TransactionListOptions = {}): Promise<string> {
    const request = { method: 'GET', path: TRANSACTIONS, query: transactionQuery(options) } as const
    return this.#http.send({ ...request, idempotent: true, accept: 'text/csv', timeoutMs: CSV_TIMEOUT_MS })
  }

  /**
   * Closed positions, the last closed first; or open positions, with the profit realized since they were opened.
   */
  async positionHistoryPage(
    options: ListOptions & { readonly status?: 'closed' | 'open' } = {},
  ): Promise<Page & { positions: readonly RecordedPosition[] }> {
    return this.#http.get('/v0/account/position-history', { ...listQuery(options), status: options.status })
  }

  /**
   * Realized profits by interval, newest first, without intervals of zero realized profit. Default interval: 1d.
   */
  async pnlPage(
    options: RangeOptions & { readonly interval?: '1h' | '1d'; readonly marketId?: number } = {},
  ) {
    const query = { ...rangeQuery(options), interval: options.interval, market_id: options.marketId }
    return this.#http.get<ProfitPage>('/v0/account/pnl', query)
  }

  /**
   * The account's equity by interval, newest first; with a market, that market's contribution. Default interval: 1d.
   */
  async equityPage(
    options: RangeOptions & { readonly interval?: '1h' | '1d'; readonly marketId?: number } = {},
  ) {
    const query = { ...rangeQuery(options), interval: options.interval, market_id: options.marketId }
    return this.#http.get<EquityPage>('/v0/account/equity', query)
  }

  /** Withdrawals with their status, newest first, and the pending amount. */
  async withdrawalPage(options: RangeOptions = {}): Promise<WithdrawalPage> {
    return this.#http.get('/v0/account/withdrawals', rangeQuery(options))
  }

  /** The account, API key and limits of the client's credential. */
  async me(): Promise<Me> {
    return this.#http.get('/v0/me')
  }

  /** All API keys of the account, by name. */
  async apiKeys(): Promise<readonly ApiKey[]> {
    return (await this.#http.get<{ api_keys: readonly ApiKey[] }>('/v0/me/api-keys')).api_keys
  }

  /**
   * Revokes the account's API key of this name at once.
   * After a lost response, a repeated call fails with API_KEY_NOT_FOUND: the key is revoked.
   */
  async revokeApiKey(name: string): Promise<void> {
    await this.#http.send({
      method: 'DELETE',
      path: `/v0/me/api-keys/${encodeURIComponent(name)}`,
      idempotent: true,
    })
  }

  async limits(): Promise<readonly RateLimit[]> {
    return (await this.#http.get<{ limits: readonly RateLimit[] }>('/v0/me/limits')).limits
  }

  async orderEvents(options: EventListOptions = {}): Promise<readonly OrderEvent[]> {
    return (await this.orderEventPage(options)).events
  }

  async orderEventPage(options: EventListOptions = {}): Promise<Page & { events: readonly OrderEvent[] }> {
    const path = `/v0/users/${await this.userId()}/order-events`
    const { marketId: market_id, kind } = options
    return this.#http.get(path, { ...rangeQuery(options), market_id, kind })
  }
}

const TRANSACTIONS = '/v0/account/transactions'
const CSV_TIMEOUT_MS = 120_000

const transactionQuery = (options: TransactionListOptions) => {
  const { marketId: market_id, type: transaction_type, from, to, limit, after } = options
  const cursor = { cursor_created_at: after?.created_at, cursor_id: after?.id }
  return { market_id, transaction_type, from, to, limit, ...cursor, ...bookmarkQuery(options) }
}

export function missingOption(option: string): never {
  throw new TypeError(`this call needs the client option ${option}`)
}
