/** Computes an order's hash and signature with the code that the exchange verifies them with. */
import { toHex } from '../domain/hex.ts'
import {
  isAlwaysReduceOnly,
  isMarketType,
  type Order,
  type OrderType,
  type Side,
} from '../domain/orders/order.ts'
import { type OrderHasher, orderHasher } from '../domain/orders/order-hash.ts'
import type { Address, MarketId, OrderHash, Price, Quantity, Seconds, Ticks } from '../domain/units.ts'
import type { Decimal } from './decimals.ts'
import { keccak } from './keccak.ts'
import { type Grid, toSteps, toTicks } from './rounding.ts'
import type { Signer } from './signers/signer.ts'

/** Market fields that signing uses: grid and signing domain. */
export interface SigningMarket extends Grid {
  readonly market_id: number
  readonly trader_address: string
}

/** The terms of an order in human-readable decimals. */
export interface OrderTerms {
  readonly side: Side
  /** Default: LIMIT with a price, MARKET without a price. */
  readonly type?: OrderType
  readonly price?: Decimal
  readonly quantity: Decimal
  readonly trigger?: Decimal
  readonly leverage?: number
  readonly reduceOnly?: boolean
  /** Unix seconds; 0 is good-til-cancelled. A market order always expires, at most 60 s after signing. */
  readonly expiration?: number
}

/** Signs orders and adjustments: the account's own key, or a session key. */
export type DigestSigner = Pick<Signer, 'signDigest'>

export interface SignedOrder {
  readonly order: Order
  readonly hash: OrderHash
  /** 66 bytes: r, s, v and 01. */
  readonly signature: string
}

/**
 * Lifetime of a market order in seconds. Its signature stays valid on chain until it expires, even after the
 * order has ended at the exchange.
 */
export const MARKET_ORDER_LIFE_S = 60

export interface UnsignedOrder {
  readonly market: SigningMarket
  readonly terms: OrderTerms
  readonly maker: string
  readonly salt: bigint
  /** Unix milliseconds. */
  readonly now: number
}

/** The order to sign: in ticks and steps, with the reduce-only bit and the expiry of its type. */
export function buildOrder({ market, terms, maker, salt, now }: UnsignedOrder): Order {
  const type = terms.type ?? (terms.price === undefined ? 'MARKET' : 'LIMIT')
  const latest = Math.floor(now / 1000) + MARKET_ORDER_LIFE_S
  const wanted = terms.expiration ?? 0
  const expiration = type !== 'MARKET' ? wanted : wanted === 0 ? latest : Math.min(wanted, latest)
  return {
    marketId: market.market_id as MarketId,
    maker: maker.toLowerCase() as Address,
    side: terms.side,
    type,
    price: isMarketType(type) ? (0 as Ticks) : toTicks(market, terms.price ?? 0),
    quantity: toSteps(market, terms.quantity),
    trigger: toTicks(market, terms.trigger ?? 0),
    leverage: terms.leverage ?? 1,
    reduceOnly: isAlwaysReduceOnly(type) || (terms.reduceOnly ?? false),
    expiration: expiration as Seconds,
    salt,
  }
}

/** Creates a signer for the orders of one market. */
export function orderSigner(market: SigningMarket, chainId: number) {
  const hasher: OrderHasher = orderHasher(
    {
      chainId: BigInt(chainId),
      trader: market.trader_address.toLowerCase() as Address,
      tick: BigInt(market.tick_size_e18_raw) as Price,
      step: BigInt(market.step_size_e18_raw) as Quantity,
    },
    keccak,
  )
  return async (order: Order, signer: DigestSigner): Promise<SignedOrder> => {
    const digest = Uint8Array.from(hasher.digest(order))
    return { order, hash: toHex(digest) as OrderHash, signature: `${await signer.signDigest(digest)}01` }
  }
}
