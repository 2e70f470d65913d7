/** A limit order of the first account. */
import type { SignedOrder } from '../../../../domain/orders/order.ts'
import type { MarketId, OrderHash, Seconds, Steps, Ticks } from '../../../../domain/units.ts'
import { addressOf } from '../../../../simulate/exchange/trading/genesis.ts'

export const limitOrder = (salt: number): SignedOrder => ({
  marketId: 1 as MarketId,
  maker: addressOf(1),
  signer: addressOf(1),
  hash: `0x${salt.toString(16).padStart(64, '0')}` as OrderHash,
  salt: BigInt(salt),
  side: 'LONG',
  type: 'LIMIT',
  price: 990 as Ticks,
  quantity: 10 as Steps,
  trigger: 0 as Ticks,
  leverage: 5,
  reduceOnly: false,
  expiration: 0 as Seconds,
  signature: `0x${'00'.repeat(66)}`,
})
