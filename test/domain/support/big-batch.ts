/**
 * Generates batches that exceed one transaction from a seed. They are not shrunk, because a shrunk batch of a
 * thousand orders explains nothing.
 */

import type { RestingOrder } from '../../../domain/book/book.ts'
import { DEFAULT_PRICE_PROTECTION } from '../../../domain/market/price-protection.ts'
import { FLAT } from '../../../domain/positions/position.ts'
import { ONE, type Seq, type Ticks, type UserId } from '../../../domain/units.ts'
import { steps, ticks } from '../../support/markets.ts'
import { randomOf } from '../../support/random.ts'
import { type AnyBatch, AS_OF } from './any-auction.ts'
import { NO_FUNDING, oracle100, positionAt, resting, roundMarket } from './resting.ts'

export interface BigOptions {
  readonly seed: number
  readonly orders: number
  readonly accounts: number
  /** How many of 100 accounts have a position. */
  readonly holders: number
}

export function bigBatch({ seed, orders: count, accounts, holders }: BigOptions): AnyBatch {
  const random = randomOf(seed)
  const one = (seq: number): RestingOrder => {
    const side = random(2) === 0 ? ('LONG' as const) : ('SHORT' as const)
    const type = random(4) === 0 ? ('MARKET' as const) : ('LIMIT' as const)
    return resting({
      seq: seq as Seq,
      account: (1 + random(accounts)) as UserId,
      side,
      type,
      limit: ticks(side === 'LONG' ? 98 + random(6) : 97 + random(6)),
      remaining: steps(1 + random(30)),
      leverage: 1 + random(12),
      reduceOnly: random(10) === 0,
      acceptedAt: AS_OF,
      reservedPrice: 1_000 as Ticks,
    })
  }
  const orders = Array.from({ length: count }, (_, i) => one(i + 1))
  const openPositions = new Map(
    Array.from({ length: accounts }, (_, i) => {
      const size = random(100) < holders ? random(41) - 20 : 0
      const margin = BigInt(1 + random(60)) * ONE + BigInt(random(9))
      return [
        (i + 1) as UserId,
        size === 0 ? FLAT : positionAt(roundMarket, { size, entry: 100, margin }),
      ] as const
    }),
  )
  return {
    spec: roundMarket,
    orders: orders.map((order) => (order.reduceOnly ? { ...order, openable: steps(0) } : order)),
    openPositions,
    fundingIndex: NO_FUNDING,
    oracle: oracle100,
    standingSeq: count as Seq,
    priceProtection: DEFAULT_PRICE_PROTECTION.perpetual,
    asOf: AS_OF,
  }
}
