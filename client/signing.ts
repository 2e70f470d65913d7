/** An order's hash and signature, by the same code that the exchange verifies them with. */
import { getBytes, hexlify, keccak256 } from 'ethers'
import {
  isMarketType,
  mustReduceOnly,
  type Order,
  type OrderType,
  type Side,
} from '../domain/orders/order.ts'
import { type OrderHasher, orderHasher } from '../domain/orders/order-hash.ts'
import type { Address, MarketId, OrderHash, Price, Quantity, Seconds, Ticks } from '../domain/units.ts'
import type { Decimal } from './decimals.ts'
import { type Grid, toSteps, toTicks } from './rounding.ts'

/** What signing needs to know of a market: its grid and its domain. */
export interface SigningMarket extends Grid {
  readonly market_id: number
  readonly trader_address: string
}

/** An order in a trader's words. */
export interface OrderDraft {
  readonly side: Side
  /** LIMIT where it is left out and there is a price, else MARKET. */
  readonly type?: OrderType
  readonly price?: Decimal
  readonly quantity: Decimal
  readonly trigger?: Decimal
  readonly leverage?: number
  readonly reduceOnly?: boolean
  /** Unix seconds; 0 is good-til-cancelled. Market orders always get one, at most 60 s away. */
  readonly expiration?: number
}

/** Any ethers wallet; a session key's works too. */
export interface MessageSigner {
  signMessage(message: Uint8Array): Promise<string>
}

export interface Signed {
  readonly order: Order
  readonly hash: OrderHash
  /** 66 bytes: r, s, v and 01. */
  readonly signature: string
}

/** A market order's signature must not outlive the trader's attention. */
export const MARKET_ORDER_LIFE_S = 60

const keccak = (message: Uint8Array): Uint8Array => getBytes(keccak256(message))

export interface UnsignedOrder {
  readonly market: SigningMarket
  readonly draft: OrderDraft
  readonly maker: string
  readonly salt: bigint
  /** Unix milliseconds. */
  readonly now: number
}

/** The order as it will be signed: on the grid, complete, with the bits and the expiry that its type demands. */
export function buildOrder({ market, draft, maker, salt, now }: UnsignedOrder): Order {
  const type = draft.type ?? (draft.price === undefined ? 'MARKET' : 'LIMIT')
  const latest = Math.floor(now / 1000) + MARKET_ORDER_LIFE_S
  const asked = draft.expiration ?? 0
  const expiration = type !== 'MARKET' ? asked : asked === 0 ? latest : Math.min(asked, latest)
  return {
    marketId: market.market_id as MarketId,
    maker: maker.toLowerCase() as Address,
    side: draft.side,
    type,
    price: isMarketType(type) ? (0 as Ticks) : toTicks(market, draft.price ?? 0),
    quantity: toSteps(market, draft.quantity),
    trigger: toTicks(market, draft.trigger ?? 0),
    leverage: draft.leverage ?? 1,
    reduceOnly: mustReduceOnly(type) || (draft.reduceOnly ?? false),
    expiration: expiration as Seconds,
    salt,
  }
}

/** Signs the orders of one market. */
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
  return async (order: Order, signer: MessageSigner): Promise<Signed> => {
    const digest = Uint8Array.from(hasher.digest(order))
    return { order, hash: hexlify(digest) as OrderHash, signature: `${await signer.signMessage(digest)}01` }
  }
}
