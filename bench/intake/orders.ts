/** Orders that are signed before the clock starts and never cross: buys below the oracle price. */
import secp256k1 from 'secp256k1'
import { keccak } from '../../api/adapters/crypto.ts'
import { toHex } from '../../domain/hex.ts'
import { type MarketSpec, priceOf, quantityOf } from '../../domain/market.ts'
import type { Order } from '../../domain/order.ts'
import { orderHasher } from '../../domain/order-hash.ts'
import { type Address, ONE, type Seconds, type Steps, type Ticks, toDecimal } from '../../domain/units.ts'

const market = (marketId: number): MarketSpec =>
  ({
    marketId,
    symbol: `BENCH-${marketId}`,
    kind: 'perpetual',
    trader: `0x${String(marketId).padStart(40, '0')}`,
    chainId: 6343n,
    tick: ONE / 10n,
    step: ONE / 1000n,
    minPrice: 1,
    minQuantity: 1,
    maxQuantity: 10_000_000,
    maxLeverage: 20,
    imr: (ONE * 45n) / 1000n,
    mmr: (ONE * 225n) / 10_000n,
    mtbLong: ONE / 20n,
    mtbShort: ONE / 20n,
    makerFee: 0n,
    takerFee: (ONE * 5n) / 10_000n,
  }) as unknown as MarketSpec

export const MARKETS: readonly MarketSpec[] = [market(1), market(2)]
export const ORACLE_TICKS = 1_000

export interface Account {
  readonly key: Uint8Array
  readonly address: Address
}

/** The same account in every run. */
export function accountOf(index: number): Account {
  const key = keccak(Buffer.from(`bench account ${index}`)).slice()
  const address = toHex(keccak(secp256k1.publicKeyCreate(key, false).subarray(1)).subarray(12)) as Address
  return { key, address }
}

const hashers = MARKETS.map((spec) => orderHasher(spec, keccak))

export interface Signed {
  readonly order: Order
  readonly signature: string
}

export function signedOrder(account: Account, which: number, salt: number): Signed {
  const spec = MARKETS[which] as MarketSpec
  const order: Order = {
    marketId: spec.marketId,
    maker: account.address,
    side: 'LONG',
    type: 'LIMIT',
    price: (ORACLE_TICKS - 1 - (salt % 100)) as Ticks,
    quantity: (1 + (salt % 50)) as Steps,
    trigger: 0 as Ticks,
    leverage: 1 + (salt % 10),
    reduceOnly: false,
    expiration: 0 as Seconds,
    salt: BigInt(salt),
  }
  const hasher = hashers[which] as (typeof hashers)[number]
  const hash = hasher.personalHash(hasher.digest(order))
  const { signature, recid } = secp256k1.ecdsaSign(hash, account.key)
  return { order, signature: `${toHex(signature)}${(27 + recid).toString(16)}01` }
}

export function bodyOf({ order, signature }: Signed, spec: MarketSpec): string {
  return JSON.stringify({
    market_id: order.marketId,
    side: order.side,
    order_type: order.type,
    price: Number(toDecimal(priceOf(spec, order.price))),
    quantity: Number(toDecimal(quantityOf(spec, order.quantity))),
    leverage: order.leverage,
    expiration_seconds: order.expiration,
    reduce_only: order.reduceOnly,
    salt: String(order.salt),
    signature,
    signature_type: 1,
  })
}
