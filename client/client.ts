/**
 * A trader's connection to the exchange: market data, orders, account and collateral over one HTTP session.
 */
import { Account } from './account.ts'
import { Adjustments } from './adjustments.ts'
import type { Authorization } from './authorization.ts'
import { Bank } from './bank.ts'
import type { ClearbatchError } from './errors.ts'
import { createHttpSession, type HttpOptions, type HttpSession } from './http-session.ts'
import { LiveFeed } from './live/live-feed.ts'
import { MarginNonces } from './margin-nonces.ts'
import { MarketData } from './market-data.ts'
import { OrderFactory } from './order-factory.ts'
import { Orders } from './orders.ts'
import { OutcomeMemory } from './outcomes.ts'
import { Positions } from './positions.ts'
import { type SaltSequence, saltSequence } from './salts.ts'
import { SessionKeys } from './session-keys.ts'
import { type SignerLike, toSigner } from './signers/adapters.ts'
import { defaultSigner } from './signers/default-signer.ts'
import type { Signer } from './signers/signer.ts'

export interface ClientOptions {
  readonly baseUrl: string
  /** API key; without it the client reads only public data. */
  readonly apiKey?: string
  /**
   * Alternative to `apiKey`: `Key <api key>`, `Bearer <token>`, or a function that returns either.
   * The client calls the function again when the credential expires.
   */
  readonly authorization?: Authorization
  /**
   * Private key of the account; in a browser pass `signer`.
   * Without a key the client cannot sign, unless `orderSigner` signs orders for `address`.
   */
  readonly privateKey?: string
  /** Alternative to `privateKey`: a signer of the account, an ethers wallet, or a viem account. */
  readonly signer?: SignerLike
  /**
   * Address of an account without a known private key, for example a contract that trades through a session
   * key.
   */
  readonly address?: string
  /** Node that receives deposits and withdrawals. */
  readonly rpcUrl?: string
  /** Session key that signs orders instead of the account's own key. */
  readonly orderSigner?: SignerLike
  readonly salts?: SaltSequence
  /** Called if the exchange refuses the credential, or a topic, of the live feed. */
  readonly onLiveError?: (error: ClearbatchError) => void
  readonly http?: Pick<HttpOptions, 'timeoutMs' | 'budgetMs' | 'fetch'>
}

export class Client {
  readonly marketData: MarketData
  /** HTTP session for classes outside the core, such as `PublicHistory`. */
  readonly http: HttpSession
  readonly account: Account
  readonly orders: Orders
  readonly positions: Positions
  readonly bank: Bank
  readonly sessionKeys: SessionKeys
  readonly adjustments: Adjustments
  readonly marginNonces: MarginNonces
  /** Live feed; it connects at its first use. */
  readonly live: LiveFeed

  constructor(options: ClientOptions) {
    const owner = ownerOf(options)
    const address = owner?.address ?? options.address ?? null
    const authorization =
      options.authorization ?? (options.apiKey === undefined ? undefined : `Key ${options.apiKey}`)
    const outcomes = new OutcomeMemory()
    const http = createHttpSession({
      ...options.http,
      baseUrl: options.baseUrl,
      outcomes,
      authorization,
    })
    this.marketData = new MarketData(http)
    this.http = http
    this.account = new Account(http, address)
    const signer = options.orderSigner === undefined ? owner : toSigner(options.orderSigner)
    this.adjustments = new Adjustments({
      ...{ http, account: this.account, marketData: this.marketData, signer },
      nonces: saltSequence(),
    })
    const factory = new OrderFactory({
      account: this.account,
      marketData: this.marketData,
      signer,
      salts: options.salts ?? saltSequence(),
    })
    this.orders = new Orders(http, this.account, factory)
    this.positions = new Positions(this.account, this.orders)
    this.live = new LiveFeed({
      baseUrl: options.baseUrl,
      outcomes,
      authorization,
      budgetMs: options.http?.budgetMs,
      onError: options.onLiveError,
      readOrder: ({ order, read_after }) => this.orders.get(order.order_id, { readAfter: read_after }),
    })
    const parts = { http, account: this.account, marketData: this.marketData, signer: owner }
    this.sessionKeys = new SessionKeys(parts)
    this.marginNonces = new MarginNonces(parts)
    this.bank = new Bank({ ...parts, rpcUrl: options.rpcUrl, fetch: options.http?.fetch })
  }

  /** Closes the live-feed connection; an open connection keeps the program running. */
  close(): void {
    this.live.close()
  }
}

function ownerOf({ privateKey, signer }: ClientOptions): Signer | null {
  if (signer !== undefined) return toSigner(signer)
  return privateKey === undefined ? null : defaultSigner(privateKey)
}
