/** Reads of one account: balance, positions, liquidations, and the fills and events of all its orders. */
import type { HttpSession } from './http-session.ts'
import {
  bookmarkQuery,
  type ListOptions,
  listQuery,
  type Page,
  type PageOptions,
  pageQuery,
  type ReadOptions,
} from './queries.ts'
import type {
  Balance,
  Fill,
  LiquidationDecision,
  OrderEvent,
  OrderEventKind,
  Position,
  Transaction,
  TransactionType,
} from './responses.ts'

export interface EventListOptions extends PageOptions {
  readonly marketId?: number
  readonly kind?: OrderEventKind
}

export interface TransactionListOptions extends ReadOptions {
  readonly marketId?: number
  readonly type?: TransactionType
  readonly limit?: number
  /** The last transaction of the page before; null or left out for the newest page. */
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

  async balance(options: ReadOptions = {}): Promise<Balance> {
    const path = `/v0/balance/${await this.userId()}/margin`
    return (await this.#http.get<{ balance: Balance }>(path, bookmarkQuery(options))).balance
  }

  async positions(options: ReadOptions & { readonly marketId?: number } = {}): Promise<readonly Position[]> {
    const path = `/v0/positions/by-user/${await this.userId()}`
    const query = { market_id: options.marketId, ...bookmarkQuery(options) }
    return (await this.#http.get<{ positions: readonly Position[] }>(path, query)).positions
  }

  /** Decisions on liquidations of the account, and on deleveragings in which it is a counterparty. */
  async liquidationPage(
    options: PageOptions & { readonly marketId?: number } = {},
  ): Promise<Page & { steps: readonly LiquidationDecision[] }> {
    return this.#http.get('/v0/account/liquidations', { market_id: options.marketId, ...pageQuery(options) })
  }

  async fills(options: ListOptions = {}): Promise<readonly Fill[]> {
    return (await this.fillPage(options)).fills
  }

  async fillPage(options: ListOptions = {}): Promise<Page & { fills: readonly Fill[] }> {
    return this.#http.get(`/v0/fills/by-user/${await this.userId()}`, listQuery(options))
  }

  /** Deposits, withdrawals and funding payments, newest first. A page without transactions is the end of the list. */
  async transactions(options: TransactionListOptions = {}): Promise<readonly Transaction[]> {
    const { marketId: market_id, type: transaction_type, limit, after } = options
    const cursor = { cursor_created_at: after?.created_at, cursor_id: after?.id }
    const query = { market_id, transaction_type, limit, ...cursor, ...bookmarkQuery(options) }
    const path = '/v0/account/transactions'
    return (await this.#http.get<{ transactions: readonly Transaction[] }>(path, query)).transactions
  }

  async orderEvents(options: EventListOptions = {}): Promise<readonly OrderEvent[]> {
    return (await this.orderEventPage(options)).events
  }

  async orderEventPage(options: EventListOptions = {}): Promise<Page & { events: readonly OrderEvent[] }> {
    const path = `/v0/users/${await this.userId()}/order-events`
    const { marketId: market_id, kind } = options
    return this.#http.get(path, { ...pageQuery(options), market_id, kind })
  }
}

export function missingOption(option: string): never {
  throw new TypeError(`this call needs the client option ${option}`)
}
