/** A trader's connection to the exchange: signs with his wallet, speaks REST, and asks again where that is safe. */
import { JsonRpcProvider, type Signer, Wallet } from 'ethers'
import type {
  Balance,
  FaucetAnswer,
  Market,
  Orderbook,
  PlacedOrder,
  Placement,
  Position,
  SharedContracts,
} from './answers.ts'
import { type BankAddresses, deposit, requestWithdrawal, withdraw } from './bank.ts'
import { type Decimal, toE18 } from './decimals.ts'
import { ClearbatchError, CODES } from './errors.ts'
import { createHttp, type HttpOptions } from './http.ts'
import { Reading } from './reading.ts'
import { type SaltSequence, saltSequence } from './salts.ts'
import type { MessageSigner } from './signing.ts'
import { bookmark, missing, type ReadOptions } from './trading.ts'

export interface ClientOptions {
  readonly baseUrl: string
  /** Without it only public data can be read. */
  readonly apiKey?: string
  /** The account's own key. Without it nothing can be signed. */
  readonly privateKey?: string
  /** Where deposits and withdrawals are sent. */
  readonly rpcUrl?: string
  /** A session key, if orders are not to be signed by the account's own. */
  readonly orderSigner?: MessageSigner
  readonly salts?: SaltSequence
  readonly http?: Pick<HttpOptions, 'timeoutMs' | 'budgetMs' | 'fetch'>
}

export class Client extends Reading {
  readonly #wallet: Signer | null
  #contracts: SharedContracts | null = null

  constructor(options: ClientOptions) {
    // Without a cache: it would give the nonce of the approval to the deposit that follows it.
    const settings = { cacheTimeout: -1, pollingInterval: 250 }
    const provider =
      options.rpcUrl === undefined ? null : new JsonRpcProvider(options.rpcUrl, undefined, settings)
    const wallet = options.privateKey === undefined ? null : new Wallet(options.privateKey, provider)
    const http = createHttp({
      ...options.http,
      baseUrl: options.baseUrl,
      ...(options.apiKey === undefined ? {} : { authorization: `Key ${options.apiKey}` }),
    })
    super(http, {
      maker: wallet?.address ?? null,
      signer: options.orderSigner ?? wallet,
      salts: options.salts ?? saltSequence(),
    })
    this.#wallet = wallet
  }

  /** Ends the connection to the chain, which would keep the program alive. */
  close(): void {
    this.#wallet?.provider?.destroy()
  }

  // ------------------------------------------------------------------ public data

  async markets({ readAfter }: ReadOptions = {}): Promise<readonly Market[]> {
    return this.get('/v0/markets', bookmark(readAfter))
  }

  async orderbook(marketId: number, options: ReadOptions & { depth?: number } = {}): Promise<Orderbook> {
    const query = { depth: options.depth, ...bookmark(options.readAfter) }
    return this.get(`/v0/orderbook/by-market/${marketId}`, query)
  }

  async contracts(): Promise<SharedContracts> {
    this.#contracts ??= await this.get<SharedContracts>('/v0/contracts/shared')
    return this.#contracts
  }

  // ------------------------------------------------------------------ collateral

  /** Test collateral and gas for the wallet, on chains that have a faucet. Deposits nothing. */
  async faucet(): Promise<FaucetAnswer> {
    return this.http.send({ method: 'POST', path: '/v0/faucet', body: {}, repeatable: false })
  }

  /** Approves and deposits by the trader's own transactions, and comes back when the exchange shows it. */
  async deposit(amount: Decimal): Promise<{ readonly tx_hash: string; readonly balance: Balance }> {
    const before = await this.#freeBalance()
    const tx_hash = await deposit(this.#walletOnChain(), await this.#bank(), toE18(amount))
    const balance = await this.waitFor(
      () => this.#balanceOrNull(),
      (now) => now !== null && BigInt(now.free_e18_raw) >= before + toE18(amount),
    )
    return { tx_hash, balance: balance as Balance }
  }

  /** First step of two: takes the amount out of the free balance. */
  async requestWithdrawal(amount: Decimal): Promise<string> {
    return requestWithdrawal(this.#walletOnChain(), await this.#bank(), toE18(amount))
  }

  /** Second step: pays what was requested, once the bank's delay is over. */
  async withdraw(): Promise<string> {
    return withdraw(this.#walletOnChain(), await this.#bank())
  }

  // ------------------------------------------------------------------ the account

  async positions(options: ReadOptions & { readonly marketId?: number } = {}): Promise<readonly Position[]> {
    const path = `/v0/positions/by-user/${await this.userId()}`
    const query = { market_id: options.marketId, ...bookmark(options.readAfter) }
    return (await this.get<{ positions: readonly Position[] }>(path, query)).positions
  }

  async balance({ readAfter }: ReadOptions = {}): Promise<Balance> {
    const path = `/v0/balance/${await this.userId()}/margin`
    return (await this.get<{ balance: Balance }>(path, bookmark(readAfter))).balance
  }

  // ------------------------------------------------------------------ waiting

  /** Reads until `done`, then gives what it read. What no bookmark names, a later batch or block, is waited for like this. */
  async waitFor<Value>(
    read: () => Promise<Value>,
    done: (value: Value) => boolean,
    { budgetMs = 15_000, everyMs = 50 }: { readonly budgetMs?: number; readonly everyMs?: number } = {},
  ): Promise<Value> {
    const deadline = Date.now() + budgetMs
    for (;;) {
      const value = await read()
      if (done(value)) return value
      if (Date.now() + everyMs > deadline) throw waitedTooLong(budgetMs, value)
      await new Promise((resolve) => setTimeout(resolve, everyMs))
    }
  }

  /** Reads the order from its placement on, until `done`. */
  async waitForOrder(
    { order, read_after }: Pick<Placement, 'order' | 'read_after'>,
    done: (order: PlacedOrder) => boolean,
    budgetMs = 15_000,
  ): Promise<PlacedOrder> {
    return this.waitFor(() => this.order(order.order_id, { readAfter: read_after }), done, { budgetMs })
  }

  // ------------------------------------------------------------------ inside

  #walletOnChain(): Signer {
    return this.#wallet?.provider ? this.#wallet : missing('privateKey and rpcUrl')
  }

  async #bank(): Promise<BankAddresses> {
    const { addressCollateralToken: token, addressMarginBank: bank } = await this.contracts()
    return { token, bank }
  }

  async #freeBalance(): Promise<bigint> {
    return BigInt((await this.#balanceOrNull())?.free_e18_raw ?? 0)
  }

  /** Null before the first deposit: the account has no user yet. */
  async #balanceOrNull(): Promise<Balance | null> {
    try {
      return await this.balance()
    } catch (error) {
      if (error instanceof ClearbatchError && error.status === 404) return null
      throw error
    }
  }
}

const waitedTooLong = (budgetMs: number, last: unknown): ClearbatchError =>
  new ClearbatchError(`not within ${budgetMs} ms`, {
    status: 0,
    code: CODES.timeout,
    outcome: 'unknown',
    retryable: true,
    retryAfterMs: null,
    requestId: null,
    details: { last },
  })
