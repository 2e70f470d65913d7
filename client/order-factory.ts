/**
 * Builds signed orders from a trader's terms: assigns salts, signs for the account, and writes the request
 * body.
 */
import type { TimeInForce } from '../domain/orders/order.ts'
import { type Account, missingOption } from './account.ts'
import { toWire } from './decimals.ts'
import type { MarketData } from './market-data.ts'
import type { Market } from './responses.ts'
import type { SaltSequence } from './salts.ts'
import { buildOrder, type DigestSigner, type OrderTerms, orderSigner, type SignedOrder } from './signing.ts'

export interface NewOrder extends OrderTerms {
  readonly marketId: number
  /** Your label, unique among the account's live orders. Not signed. */
  readonly clientOrderId?: string
  /** `ioc`: the order takes part in one auction, and its remainder ends. Limit orders only; not signed. */
  readonly timeInForce?: TimeInForce
  /**
   * Rejects the order if it crosses an earlier limit order, so it never pays the taker rate. Limit orders
   * only; not signed.
   */
  readonly postOnly?: boolean
  /**
   * Your bracket number in the market, from 1. An entry and its exits share the number and end together. Not
   * signed.
   */
  readonly bracketId?: number
  /**
   * Label of the program that built the order: 1 to 32 lower-case letters, digits and hyphens. Not signed.
   * The exchange publishes the total volume per label.
   */
  readonly builder?: string
  /**
   * Seconds from signing until the order expires, instead of `expiration`.
   * The signature of a cancelled or replaced order stays valid on chain until then, so use a short time for
   * quotes.
   */
  readonly expiresInSeconds?: number
}

/** A signed order with its request body. Sending the same order again never places a second order. */
export interface OutgoingOrder extends SignedOrder {
  readonly body: Readonly<Record<string, unknown>>
}

export interface OrderFactoryOptions {
  readonly account: Account
  readonly marketData: MarketData
  /** The account's own key or a session key; null if the client has no key. */
  readonly signer: DigestSigner | null
  readonly salts: SaltSequence
}

interface SigningContext {
  readonly market: Market
  readonly sign: ReturnType<typeof orderSigner>
}

export class OrderFactory {
  readonly #options: OrderFactoryOptions
  /** Signing contexts by market id. A market's grid and contract address never change. */
  readonly #contexts = new Map<number, SigningContext>()

  constructor(options: OrderFactoryOptions) {
    this.#options = options
  }

  async sign({
    marketId,
    clientOrderId,
    timeInForce,
    postOnly,
    bracketId,
    builder,
    expiresInSeconds,
    ...terms
  }: NewOrder): Promise<OutgoingOrder> {
    const { market, sign } = await this.#contextOf(marketId)
    const { account, salts, signer } = this.#options
    const now = Date.now()
    const expiry = expiresInSeconds && { expiration: Math.floor(now / 1000) + expiresInSeconds }
    const order = buildOrder({
      market,
      terms: { ...terms, ...expiry },
      maker: account.address,
      salt: salts.next(),
      now,
    })
    const signed = await sign(order, signer ?? missingOption('privateKey (or signer)'))
    // JSON omits undefined fields.
    const unsigned = {
      client_order_id: clientOrderId,
      time_in_force: timeInForce,
      post_only: postOnly,
      bracket_id: bracketId,
      builder,
    }
    return { ...signed, body: { ...bodyOf(signed, market), ...unsigned } }
  }

  /** Cached after the first call, because the grid never changes. */
  async market(marketId: number): Promise<Market> {
    return (await this.#contextOf(marketId)).market
  }

  async #contextOf(marketId: number): Promise<SigningContext> {
    const cached = this.#contexts.get(marketId)
    if (cached !== undefined) return cached
    const market = await this.#options.marketData.market(marketId)
    const context = { market, sign: orderSigner(market, market.chain_id) }
    this.#contexts.set(marketId, context)
    return context
  }
}

const bodyOf = ({ order, signature }: SignedOrder, market: Market): Record<string, unknown> => ({
  market_id: order.marketId,
  side: order.side,
  order_type: order.type,
  ...(order.price === 0 ? {} : { price: toWire(BigInt(order.price) * BigInt(market.tick_size_e18_raw)) }),
  quantity_e18_raw: (BigInt(order.quantity) * BigInt(market.step_size_e18_raw)).toString(),
  leverage: order.leverage,
  expiration_seconds: order.expiration,
  ...(order.trigger === 0
    ? {}
    : { trigger_price: toWire(BigInt(order.trigger) * BigInt(market.tick_size_e18_raw)) }),
  reduce_only: order.reduceOnly,
  salt: order.salt.toString(),
  signature,
  signature_type: 1,
})
