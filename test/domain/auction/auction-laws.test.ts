/**
 * The laws of an auction (risk research B4) that need a whole batch. Laws 3, 4, 7, 8, 13 and 15 are tested
 * beside their functions.
 */
import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { clear, recompute } from '../../../domain/auction/auction.ts'
import { bandLimit } from '../../../domain/auction/candidates.ts'
import type { Fill, Protection } from '../../../domain/auction/clearing.ts'
import type { RestingOrder } from '../../../domain/book/book.ts'
import { priceBand } from '../../../domain/market/band.ts'
import { feeOf } from '../../../domain/market/fees.ts'
import { notionalAt, oneInTicks } from '../../../domain/market/market.ts'
import type { Position } from '../../../domain/positions/position.ts'
import type { Quantity, Quote, Seconds, Seq, Steps, Ticks, UserId } from '../../../domain/units.ts'
import { type AnyBatch, AS_OF, anyBatch, outcomeOf, positionsOf, toInput } from '../support/any-auction.ts'
import { checkClearedBatches, orderOf, sum } from '../support/cleared-batches.ts'
import { resting } from '../support/resting.ts'

describe('law 1', () => {
  it('when any batch clears, no order trades beyond its limit or protection price, and no buy opens above its reserved price', () => {
    checkClearedBatches(({ fills, price, protections }, batch) => {
      for (const { seq, opening } of fills) {
        const { side, type, limit, reservedPrice } = orderOf(batch, seq)
        if (type === 'LIMIT') expect(side === 'LONG' ? price <= limit : price >= limit).to.equal(true)
        if (side === 'LONG' && opening > 0) expect(price).to.be.at.most(reservedPrice)
        if (type === 'LIMIT') continue
        const protection = protections.find((one) => one.seq === seq) as Protection
        expect(side === 'LONG' ? price <= protection.price : price >= protection.price).to.equal(true)
      }
    })
  })
})

describe('law 2', () => {
  it('when any batch clears, its price is inside the band', () => {
    checkClearedBatches(({ price, lo, hi }, { spec, oracle }) => {
      expect({ lo, hi }).to.deep.equal(priceBand(spec, oracle))
      expect(price).to.be.within(lo, hi)
    })
  })
})

describe('laws 5 and 6', () => {
  it('when any batch clears, every fee is computed at one price, and buys, sells and pairs add up to the volume', () => {
    checkClearedBatches(({ fills, pairs, price, volume }, { spec }) => {
      const ofSide = (side: string): number =>
        sum(fills.filter((fill) => fill.side === side).map(({ fill }) => fill))
      expect([ofSide('LONG'), ofSide('SHORT'), sum(pairs.map(({ steps }) => steps))]).to.deep.equal([
        volume,
        volume,
        volume,
      ])
      for (const { taker, maker, fee, fill, reducing, opening } of fills) {
        expect(fee).to.equal(
          feeOf(spec, price, taker, spec.takerFee) + feeOf(spec, price, maker, spec.makerFee),
        )
        expect([taker + maker, reducing + opening]).to.deep.equal([fill, fill])
      }
    })
  })

  it('when any batch clears, it states demand and supply at the price, the smaller is the volume, and the larger side is prorated', () => {
    checkClearedBatches(({ demand, supply, volume, proration, fills }, batch) => {
      expect(Math.min(demand, supply)).to.equal(volume)
      if (demand === supply) expect(proration).to.equal(null)
      else
        expect(proration).to.deep.equal({
          side: demand > supply ? 'LONG' : 'SHORT',
          volume,
          eligible: Math.max(demand, supply),
        })
      for (const { seq, fill, remaining } of fills)
        expect(fill + remaining).to.equal(orderOf(batch, seq).remaining)
    })
  })
})

describe('law 9', () => {
  it('when the orders are inserted in another sequence, the result and its inputs are the same', () => {
    const shuffled = anyBatch({ minOrders: 5 }).chain((batch) =>
      fc.tuple(
        fc.constant(batch),
        fc.shuffledSubarray([...batch.orders], { minLength: batch.orders.length }),
      ),
    )
    fc.assert(
      fc.property(shuffled, ([batch, orders]) => {
        expect(clear(toInput(batch, orders))).to.deep.equal(clear(toInput(batch)))
      }),
    )
  })
})

describe('law 10', () => {
  it('when the step is larger, only amounts of money change', () => {
    fc.assert(
      fc.property(anyBatch({ minOrders: 5 }), fc.bigInt({ min: 2n, max: 1000n }), (batch, k) => {
        const plain = {
          ...batch,
          orders: batch.orders.map(reservedForAll),
          openPositions: mapValues(batch.openPositions, wholePerStep),
        }
        const large: AnyBatch = {
          ...plain,
          spec: { ...batch.spec, step: (batch.spec.step * k) as Quantity },
          fundingIndex: (batch.fundingIndex * k) as AnyBatch['fundingIndex'],
          openPositions: mapValues(plain.openPositions, (position) => ({
            ...position,
            entryNotional: (position.entryNotional * k) as Quote,
            foldedMargin: (position.foldedMargin * k) as Quote,
          })),
        }
        const [small, big] = [clear(toInput(plain)), clear(toInput(large))]
        expect(big.fills).to.deep.equal(small.fills.map((fill) => ({ ...fill, fee: fill.fee * k })))
        expect({ ...big, fills: 0, pairs: 0, inputs: 0 }).to.deep.equal({
          ...small,
          fills: 0,
          pairs: 0,
          inputs: 0,
        })
      }),
    )
  })

  /** The covered steps round by the step, so they are left out of the comparison. */
  const reservedForAll = (order: RestingOrder): RestingOrder =>
    order.side === 'SHORT'
      ? { ...order, reservedPrice: Math.max(order.reservedPrice, 1_000) as Ticks }
      : order

  /** The bankruptcy price rounds per step, so margin and entry are multiples of the step count. */
  const wholePerStep = (position: Position): Position => {
    const count = BigInt(Math.abs(position.size) || 1)
    const whole = (amount: bigint): Quote => (amount - (amount % count)) as Quote
    return {
      ...position,
      entryNotional: whole(position.entryNotional),
      foldedMargin: whole(position.foldedMargin),
    }
  }
})

const mapValues = <K, V>(map: ReadonlyMap<K, V>, change: (value: V) => V): Map<K, V> =>
  new Map([...map].map(([key, value]) => [key, change(value)]))

describe('law 11', () => {
  it('when sides and prices of a binary market are mirrored at 0.50, the result is mirrored', () => {
    fc.assert(
      fc.property(anyBatch({ grid: 2, minOrders: 5, onTick: true }), (batch) => {
        const straight = clear(toInput(batch))
        const mirrored = clear(toInput(mirror(batch)))
        const swapped = { buy_pressure: 'sell_pressure', sell_pressure: 'buy_pressure' } as const
        const { rule } = straight
        expect(mirrored.rule).to.equal(
          rule === 'buy_pressure' || rule === 'sell_pressure' ? swapped[rule] : rule,
        )
        expect(mirrored.price).to.equal(straight.price === null ? null : 100 - straight.price)
        expect([mirrored.demand, mirrored.supply]).to.deep.equal([straight.supply, straight.demand])
        expect(mirrored.cancels).to.deep.equal(straight.cancels)
        const sizes = (fills: readonly Fill[]) =>
          fills.map(({ seq, reducing, opening }) => ({ seq, reducing, opening }))
        expect(sizes(mirrored.fills)).to.have.deep.members(sizes(straight.fills))
      }),
      { numRuns: 400 },
    )
  })

  /** Mirrors a binary batch: each price p becomes 1 - p, and the sides are swapped. */
  function mirror(batch: AnyBatch): AnyBatch {
    const { spec } = batch
    const other = (tick: Ticks): Ticks => (oneInTicks(spec) - tick) as Ticks
    return {
      ...batch,
      orders: batch.orders.map((order) => ({
        ...order,
        side: order.side === 'LONG' ? 'SHORT' : 'LONG',
        limit: order.type === 'MARKET' ? order.limit : other(order.limit),
        reservedPrice: other(order.reservedPrice),
      })),
      openPositions: mapValues(batch.openPositions, (position) => ({
        ...position,
        size: (position.size === 0 ? 0 : -position.size) as Steps,
        entryNotional: (notionalAt(spec, oneInTicks(spec), Math.abs(position.size) as Steps) -
          position.entryNotional) as Quote,
      })),
    }
  }
})

describe('law 12', () => {
  it('when an order cannot trade, the result without it is the same', () => {
    const anyExtra = fc.record({
      reason: fc.constantFrom(
        'expired',
        'waited',
        'behind band',
        'out of reach',
        'excluded',
        'nothing to reduce' as const,
      ),
      side: fc.constantFrom('LONG' as const, 'SHORT' as const),
      account: fc.integer({ min: 1, max: 6 }),
      isEarliest: fc.boolean(),
    })
    fc.assert(
      fc.property(anyBatch({ minOrders: 5 }), anyExtra, (batch, extra) => {
        const order = idle(batch, extra)
        if (order === null) return
        const excluded = {
          accounts: new Set<UserId>(),
          orders: new Set(extra.reason === 'excluded' ? [order.seq] : []),
        }
        const with1 = clear({ ...toInput(batch, [...batch.orders, order]), excluded })
        expect(outcomeOf(with1)).to.equal(outcomeOf(clear(toInput(batch))))
      }),
      { numRuns: 600 },
    )
  })

  interface Extra {
    readonly reason: string
    readonly side: 'LONG' | 'SHORT'
    readonly account: number
    readonly isEarliest: boolean
  }

  /** An order that cannot trade in this batch; null if the batch allows none of that kind. */
  function idle(
    { spec, oracle, orders, openPositions }: AnyBatch,
    { reason, side, account, isEarliest }: Extra,
  ): RestingOrder | null {
    const band = priceBand(spec, oracle)
    const others = orders
      .filter((order) => order.side !== side)
      .map((order) => bandLimit(order, band, new Map()))
    const limits = {
      'behind band': side === 'LONG' ? band.lo - 1 : band.hi + 1,
      'out of reach':
        side === 'LONG' ? Math.min(...others, band.hi + 1) - 1 : Math.max(...others, band.lo - 1) + 1,
    }
    const limit = limits[reason as keyof typeof limits] ?? (side === 'LONG' ? band.hi : band.lo)
    const canReduce = side === 'LONG' ? -1 : 1
    if (
      limit < 1 ||
      (reason === 'nothing to reduce' && (openPositions.get(account as UserId)?.size ?? 0) * canReduce > 0)
    )
      return null
    return resting({
      seq: (isEarliest ? 0 : 1_000) as Seq,
      account: account as UserId,
      side,
      limit: limit as Ticks,
      acceptedAt: AS_OF,
      ...(reason === 'expired' ? { expiration: 1999 as Seconds } : {}),
      ...(reason === 'waited' ? { type: 'MARKET', acceptedAt: (AS_OF - 2000) as typeof AS_OF } : {}),
      ...(reason === 'nothing to reduce' ? { reduceOnly: true, openable: 0 as Steps } : {}),
    })
  }
})

describe('law 14', () => {
  it('when any batch clears, reduce-only and forced orders only shrink their position, and never beyond zero', () => {
    checkClearedBatches(({ fills }, batch) => {
      for (const [account, own] of Map.groupBy(fills, (fill) => fill.account)) {
        const { size } = positionsOf(batch)(account)
        const closing = own.filter(({ side }) => (side === 'LONG' ? size < 0 : size > 0))
        expect(sum(own.map(({ reducing }) => reducing))).to.equal(
          Math.min(Math.abs(size), sum(closing.map(({ fill }) => fill))),
        )
        for (const { seq, opening } of own) {
          const { reduceOnly, openable } = orderOf(batch, seq)
          expect(opening).to.be.at.most(reduceOnly ? 0 : openable)
        }
      }
    })
  })

  it('when any batch clears, no account trades on both sides', () => {
    checkClearedBatches(({ fills, pairs }, batch) => {
      for (const own of Map.groupBy(fills, (fill) => fill.account).values()) {
        expect(new Set(own.map(({ side }) => side)).size).to.equal(1)
      }
      for (const { buySeq, sellSeq } of pairs) {
        expect(orderOf(batch, buySeq).account).to.not.equal(orderOf(batch, sellSeq).account)
      }
    })
  })
})

describe('law 17', () => {
  it('when a batch is recomputed from its inputs, the result is identical', () => {
    fc.assert(
      fc.property(anyBatch({ minOrders: 5 }), (batch) => {
        const clearing = clear(toInput(batch))
        expect(recompute(clearing.inputs)).to.deep.equal(clearing)
      }),
    )
  })
})
