/** Vectors against which clients in other languages check their signing: `docs/signing-vectors.json`. */
import { TypedDataEncoder } from 'ethers'
import type { MarketSpec } from '../../../domain/market/market.ts'
import {
  isAlwaysReduceOnly,
  isMarketType,
  ORDER_TYPES,
  type Order,
  type Side,
  triggerCondition,
} from '../../../domain/orders/order.ts'
import { DOMAIN_NAME, DOMAIN_VERSION, hashOrder, packFlags } from '../../../domain/orders/order-hash.ts'
import type { Seconds, Steps, Ticks } from '../../../domain/units.ts'
import { addressOf, keccak, signOrder, wallet } from '../../support/exchange.ts'
import { markets } from '../../support/markets.ts'
import { actionVectors } from './action-vectors.ts'

const ORDER_FIELDS = [
  { name: 'flags', type: 'bytes8' },
  { name: 'quantity', type: 'uint128' },
  { name: 'price', type: 'uint128' },
  { name: 'triggerPrice', type: 'uint128' },
  { name: 'triggerCondition', type: 'uint8' },
  { name: 'leverage', type: 'uint128' },
  { name: 'maker', type: 'address' },
  { name: 'expiration', type: 'uint128' },
]

const maker = wallet('signing vectors')

/** The domain in the form of ethers, with numbers as text: chain ids and amounts exceed a JSON number in some parsers. */
export const domainOf = ({ chainId, trader }: Pick<MarketSpec, 'chainId' | 'trader'>) => ({
  name: DOMAIN_NAME,
  version: DOMAIN_VERSION,
  chainId: `${chainId}`,
  verifyingContract: trader,
})

/** The signed struct, amounts x 1e18. */
export const signedStruct = (order: Order, spec: MarketSpec) => ({
  flags: `0x${packFlags(order).toString(16).padStart(16, '0')}`,
  quantity: `${BigInt(order.quantity) * spec.step}`,
  price: `${BigInt(order.price) * spec.tick}`,
  triggerPrice: `${BigInt(order.trigger) * spec.tick}`,
  triggerCondition: triggerCondition(order.type, order.side),
  leverage: `${BigInt(order.leverage) * 10n ** 18n}`,
  maker: order.maker,
  expiration: `${order.expiration}`,
})

function drawOrder(spec: MarketSpec, type: Order['type'], side: Side, index: number): Order {
  const hasTrigger = type !== 'MARKET' && type !== 'LIMIT'
  return {
    marketId: spec.marketId,
    maker: addressOf(maker),
    side,
    type,
    price: (isMarketType(type) ? 0 : 400 + index) as Ticks,
    quantity: (1_000 + index) as Steps,
    trigger: (hasTrigger ? 500 + index : 0) as Ticks,
    leverage: 1 + (index % spec.maxLeverage),
    reduceOnly: isAlwaysReduceOnly(type) || index % 2 === 1,
    expiration: (index % 3 === 0 ? 0 : 1_900_000_000 + index) as Seconds,
    // The largest possible salt, and small ones.
    salt: index === 0 ? 2n ** 53n - 1n : BigInt(index),
  }
}

export interface OrderVector {
  readonly spec: MarketSpec
  readonly order: Order
}

/** Every type and side in every kind of market. */
export const ORDERS: readonly OrderVector[] = markets.flatMap((spec) =>
  ORDER_TYPES.flatMap((type, at) =>
    (['LONG', 'SHORT'] as const).map((side, of) => ({
      spec,
      order: drawOrder(spec, type, side, 2 * at + of),
    })),
  ),
)

const orderVector = ({ spec, order }: OrderVector) => {
  const struct = signedStruct(order, spec)
  return {
    market_type: spec.kind,
    order_type: order.type,
    side: order.side,
    domain: domainOf(spec),
    struct,
    struct_hash: TypedDataEncoder.hashStruct('Order', { Order: ORDER_FIELDS }, struct),
    order_hash: hashOrder(order, spec, keccak),
    signature: signOrder(order, spec, maker).signature,
  }
}

/** The complete content of the file. */
export const vectors = () => ({
  about:
    'An order is signed as a personal message (EIP-191) over its EIP-712 digest, with the suffix 01. Amounts are x 1e18; ' +
    'flags are salt << 4 | reduce_only << 1 | buy. Adjustments are signed as typed data, or as a personal message with the ' +
    'suffix 01; forward requests and price reports as typed data only. observedAt is in milliseconds, deadlines in seconds.',
  private_key: maker.privateKey,
  address: addressOf(maker),
  types: { Order: ORDER_FIELDS },
  orders: ORDERS.map(orderVector),
  ...actionVectors(),
})
