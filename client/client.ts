/** A trader's connection to the exchange: market data, orders, account and collateral over one HTTP session. */
import { JsonRpcProvider, Wallet } from 'ethers'
import { Account } from './account.ts'
import { Adjustments } from './adjustments.ts'
import { Bank } from './bank.ts'
import type { ClearbatchError } from './errors.ts'
import { createHttpSession, type HttpOptions } from './http-session.ts'
import { LiveFeed } from './live/live-feed.ts'
import { MarginNonces } from './margin-nonces.ts'
import { MarketData } from './market-data.ts'
import { OrderFactory } from './order-factory.ts'
import { Orders } from './orders.ts'
import { type SaltSequence, saltSequence } from './salts.ts'
import { SessionKeys } from './session-keys.ts'
import type { MessageSigner } from './signing.ts'

export interface ClientOptions {
  readonly baseUrl: string
  /** Without it only public data can be read. */
  readonly apiKey?: string
  /** The account's own key. Without it nothing can be signed, unless `orderSigner` signs orders for `address`. */
  readonly privateKey?: string
  /** The account, if its own key is not known: a contract that trades by a session key. */
  readonly address?: string
  /** Where deposits and withdrawals are sent. */
  readonly rpcUrl?: string
  /** A session key that signs orders in place of the account's own key. */
  readonly orderSigner?: MessageSigner
  readonly salts?: SaltSequence
  /** The exchange refuses the credential, or a topic, of the live feed. */
  readonly onLiveError?: (error: ClearbatchError) => void
  readonly http?: Pick<HttpOptions, 'timeoutMs' | 'budgetMs' | 'fetch'>
}

export class Client {
  readonly marketData: MarketData
  readonly account: Account
  readonly orders: Orders
  readonly bank: Bank
  readonly sessionKeys: SessionKeys
  readonly adjustments: Adjustments
  readonly marginNonces: MarginNonces
  /** It connects at its first use. */
  readonly live: LiveFeed
  readonly #wallet: Wallet | null

  constructor(options: ClientOptions) {
    this.#wallet = walletOf(options)
    const address = this.#wallet?.address ?? options.address ?? null
    const http = createHttpSession({
      ...options.http,
      baseUrl: options.baseUrl,
      ...(options.apiKey === undefined ? {} : { authorization: `Key ${options.apiKey}` }),
    })
    this.marketData = new MarketData(http)
    this.account = new Account(http, address)
    const signer = options.orderSigner ?? this.#wallet
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
    this.live = new LiveFeed({
      baseUrl: options.baseUrl,
      ...(options.apiKey === undefined ? {} : { authorization: `Key ${options.apiKey}` }),
      ...(options.http?.budgetMs === undefined ? {} : { budgetMs: options.http.budgetMs }),
      ...(options.onLiveError === undefined ? {} : { onError: options.onLiveError }),
      readOrder: ({ order, read_after }) => this.orders.get(order.order_id, { readAfter: read_after }),
    })
    const parts = { http, account: this.account, marketData: this.marketData, wallet: this.#wallet }
    this.sessionKeys = new SessionKeys(parts)
    this.marginNonces = new MarginNonces(parts)
    this.bank = new Bank(parts)
  }

  /** Closes the connections to the chain and to the live feed, which would otherwise keep the program running. */
  close(): void {
    this.live.close()
    this.#wallet?.provider?.destroy()
  }
}

function walletOf({ privateKey, rpcUrl }: ClientOptions): Wallet | null {
  if (privateKey === undefined) return null
  if (rpcUrl === undefined) return new Wallet(privateKey)
  // Without a cache: a cached nonce would be used for the approval and again for the deposit after it.
  return new Wallet(
    privateKey,
    new JsonRpcProvider(rpcUrl, undefined, { cacheTimeout: -1, pollingInterval: 250 }),
  )
}
