/** Converts an order to the EIP-712 typed data that its maker signs. */
import { type MarketSpec, priceOf, quantityOf } from '../../domain/market/market.ts'
import { type Order, triggerCondition } from '../../domain/orders/order.ts'
import { DOMAIN_NAME, DOMAIN_VERSION, ORDER_FIELDS, packFlags } from '../../domain/orders/order-hash.ts'
import { ONE } from '../../domain/units.ts'
import type { ValidateAnswer } from './validation-schema.ts'

export const typedData = (spec: MarketSpec, order: Order): ValidateAnswer['typed_data'] => ({
  domain: {
    name: DOMAIN_NAME,
    version: DOMAIN_VERSION,
    chainId: Number(spec.chainId),
    verifyingContract: spec.trader,
  },
  primaryType: 'Order',
  types: { Order: [...ORDER_FIELDS] },
  message: {
    flags: `0x${packFlags(order).toString(16).padStart(16, '0')}`,
    quantity: String(quantityOf(spec, order.quantity)),
    price: String(priceOf(spec, order.price)),
    triggerPrice: String(priceOf(spec, order.trigger)),
    triggerCondition: triggerCondition(order.type, order.side),
    leverage: String(BigInt(order.leverage) * ONE),
    maker: order.maker,
    expiration: String(order.expiration),
  },
})
