/** Signs the orders of a load. Those of `signerOf` never cross: buys are below the market's first price, sells above it. */
import secp256k1 from 'secp256k1'
import { toHex } from '../../domain/hex.ts'
import { highestPrice, type MarketSpec, priceOf, quantityOf } from '../../domain/market/market.ts'
import type { Order } from '../../domain/orders/order.ts'
import { orderHasher } from '../../domain/orders/order-hash.ts'
import { type Address, ONE, type Seconds, type Steps, type Ticks, toDecimal } from '../../domain/units.ts'
import { keccak } from '../../service/crypto.ts'

export interface BenchMarket {
  readonly spec: MarketSpec
  /** The first oracle price. */
  readonly oracle: Ticks
}

export interface Account {
  readonly key: Uint8Array
  readonly address: Address
}

/** Deterministic: every run has the same accounts. */
export function accountOf(index: number): Account {
  const key = keccak(Buffer.from(`bench account ${index}`)).slice()
  const address = toHex(keccak(secp256k1.publicKeyCreate(key, false).subarray(1)).subarray(12)) as Address
  return { key, address }
}

export interface Signed {
  readonly order: Order
  readonly hash: string
  readonly signature: string
}

/** Distances from the first price, as fractions of it: about half of them lie beyond the band. */
const NEAREST = 0.01
const STEPS_OUT = 100

function limitOf({ spec, oracle }: BenchMarket, side: Order['side'], salt: number): Ticks {
  const furthest = 2 * (Number(side === 'LONG' ? spec.mtbLong : spec.mtbShort) / Number(ONE))
  const distance = NEAREST + (furthest - NEAREST) * ((salt % STEPS_OUT) / STEPS_OUT)
  if (side === 'LONG') return Math.max(1, Math.floor(oracle * (1 - distance))) as Ticks
  return Math.min(highestPrice(spec), Math.ceil(oracle * (1 + distance))) as Ticks
}

/** Signs a given order of the market. */
export function orderSigner({ spec }: BenchMarket) {
  const hasher = orderHasher(spec, keccak)
  return (order: Order, key: Uint8Array): Signed => {
    const digest = hasher.digest(order)
    const { signature, recid } = secp256k1.ecdsaSign(hasher.personalHash(digest), key)
    return { order, hash: toHex(digest), signature: `${toHex(signature)}${(27 + recid).toString(16)}01` }
  }
}

/** Signs orders of one market that rest far from its price. */
export function signerOf(market: BenchMarket) {
  const { spec } = market
  const sign = orderSigner(market)
  return (account: Account, salt: number): Signed => {
    const side = (salt >> 4) % 2 === 0 ? 'LONG' : 'SHORT'
    const order: Order = {
      marketId: spec.marketId,
      maker: account.address,
      side,
      type: 'LIMIT',
      price: limitOf(market, side, salt),
      quantity: (1 + (salt % 50)) as Steps,
      trigger: 0 as Ticks,
      leverage: 1 + (salt % spec.maxLeverage),
      reduceOnly: false,
      expiration: 0 as Seconds,
      salt: BigInt(salt),
    }
    return sign(order, account.key)
  }
}

const decimalOf = (spec: MarketSpec, ticks: Ticks): number => Number(toDecimal(priceOf(spec, ticks)))

export function bodyOf({ order, signature }: Signed, spec: MarketSpec): string {
  return JSON.stringify({
    market_id: order.marketId,
    side: order.side,
    order_type: order.type,
    ...(order.price !== 0 && { price: decimalOf(spec, order.price) }),
    ...(order.trigger !== 0 && { trigger_price: decimalOf(spec, order.trigger) }),
    quantity: Number(toDecimal(quantityOf(spec, order.quantity))),
    leverage: order.leverage,
    expiration_seconds: order.expiration,
    reduce_only: order.reduceOnly,
    salt: String(order.salt),
    signature,
    signature_type: 1,
  })
}
