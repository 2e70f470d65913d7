import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { BATCH_ORDERS, clear } from '../../../domain/auction/auction.ts'
import type { Cleared, Fill } from '../../../domain/auction/clearing.ts'
import {
  fitsOnePart,
  MARKET_SLOTS,
  MAX_PART_ORDERS,
  MAX_PART_SLOTS,
  type Part,
  splitIntoParts,
} from '../../../domain/auction/parts.ts'
import { openingBasis, type Position } from '../../../domain/positions/position.ts'
import { settleAccount } from '../../../domain/settlement/settle-account.ts'
import type { Seq, UserId } from '../../../domain/units.ts'
import { type AnyBatch, anyBatch, isCleared, positionsOf, toInput } from '../support/any-auction.ts'
import { bigBatch } from '../support/big-batch.ts'
import { slowClear } from '../support/slow-auction.ts'

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)

const anyBigBatch = fc
  .record({
    seed: fc.integer(),
    orders: fc.integer({ min: 50, max: 1500 }),
    accounts: fc.constantFrom(40, 200, 1500),
    holders: fc.constantFrom(0, 30, 90),
  })
  .map((options) => ({ options, batch: bigBatch(options) }))

/** Fills more than 800 orders and needs several parts. */
const large = { seed: 0, orders: 2400, accounts: 1500, holders: 30 }
const threeRounds = { options: large, batch: bigBatch(large) }

const alwaysBig = (check: (clearing: Cleared, batch: AnyBatch) => void): void => {
  fc.assert(
    fc.property(anyBigBatch, ({ batch }) => {
      const clearing = clear(toInput(batch))
      if (isCleared(clearing)) check(clearing, batch)
    }),
    { numRuns: 40, endOnFailure: true, examples: [[threeRounds]] },
  )
}

const FIELDS = ['fill', 'reducing', 'opening', 'taker', 'maker'] as const

/** The fills of one order, added up over the parts. */
function whole(parts: readonly Part[], seq: Seq) {
  const own = parts.flatMap(({ fills }) => fills.filter((fill) => fill.seq === seq))
  return {
    ...Object.fromEntries(FIELDS.map((field) => [field, sum(own.map((fill) => fill[field]))])),
    fee: own.reduce((total, { fee }) => total + fee, 0n),
    remaining: own.at(-1)?.remaining,
  }
}

describe('splitIntoParts', () => {
  it('when any batch is split, its parts in sequence have its pairs and its fills', () => {
    alwaysBig((clearing) => {
      const parts = splitIntoParts(clearing)
      expect(parts.flatMap(({ pairs }) => pairs)).to.deep.equal(clearing.pairs)
      for (const { seq, account: _, side: __, ...fill } of clearing.fills.slice(0, 200)) {
        expect(whole(parts, seq)).to.deep.equal(fill)
      }
    })
  })

  it('when any batch is split, each part is balanced and within the limits of a transaction', () => {
    alwaysBig((clearing, batch) => {
      for (const { fills, pairs, newSlots } of splitIntoParts(clearing)) {
        const ofSide = (side: string): number =>
          sum(fills.filter((fill) => fill.side === side).map(({ fill }) => fill))
        expect(ofSide('LONG')).to.equal(ofSide('SHORT'))
        expect(ofSide('LONG')).to.equal(sum(pairs.map(({ steps }) => steps)))
        expect(fills.length).to.be.within(2, MAX_PART_ORDERS)
        expect(newSlots).to.be.at.most(MAX_PART_SLOTS)
        expect(MARKET_SLOTS + slotsOf(fills), 'slots a chain without any of them would need').to.be.at.most(
          newSlots,
        )
        for (const { fill, reducing, opening, taker, maker } of fills) {
          expect(fill).to.be.greaterThan(0)
          expect([reducing + opening, taker + maker]).to.deep.equal([fill, fill])
        }
      }
      expect(batch.orders.length).to.be.greaterThan(0)
    })
  })

  it('when any batch is split, each account is contiguous in a part, its fills in the order of the batch', () => {
    alwaysBig((clearing) => {
      const place = new Map(clearing.fills.map(({ seq }, i) => [seq, i]))
      for (const { fills } of splitIntoParts(clearing)) {
        const places = fills.map(({ seq }) => place.get(seq) as number)
        expect(places).to.deep.equal(places.toSorted((a, b) => a - b))
      }
      expect(clearing.fills.map(({ account }) => account)).to.deep.equal(
        clearing.fills.map(({ account }) => account).sort((a, b) => a - b),
      )
    })
  })

  it('when a batch fits into one part, it makes one part', () => {
    fc.assert(
      fc.property(anyBatch({ minOrders: 5 }), (batch) => {
        const clearing = clear(toInput(batch))
        if (!isCleared(clearing)) return
        const [part, ...more] = splitIntoParts(clearing)
        expect(more).to.deep.equal([])
        expect(part?.fills).to.deep.equal(clearing.fills)
      }),
    )
    alwaysBig((clearing) =>
      expect(splitIntoParts(clearing).length === 1).to.equal(fitsOnePart(clearing.fills)),
    )
  })
})

describe('splitIntoParts: a case by hand', () => {
  it('when one order meets many, it continues over the parts, its reducing share first and its remaining steps in the last', () => {
    const base = { account: 1 as UserId, taker: 0, maker: 0, fee: 0n, reducing: 0 }
    const sells = Array.from({ length: 250 }, (_, i) => ({
      ...base,
      seq: i + 2,
      account: i + 2,
      side: 'SHORT',
      fill: 2,
      opening: 2,
      remaining: 0,
    }))
    const buy = { ...base, seq: 1, side: 'LONG', fill: 500, reducing: 300, opening: 200, remaining: 7 }
    const pairs = sells.map(({ seq }) => ({
      buySeq: 1,
      sellSeq: seq,
      steps: 2,
      makerSeq: 1,
      buyFee: 3n,
      sellFee: 5n,
    }))
    const parts = splitIntoParts({ fills: [buy, ...sells], pairs } as unknown as Cleared)
    const own = parts.map(({ fills }) => fills.find(({ seq }) => seq === 1))
    expect(own).to.deep.equal([
      { ...buy, fill: 392, reducing: 300, opening: 92, maker: 392, fee: 588n, remaining: 115 },
      { ...buy, fill: 108, reducing: 0, opening: 108, maker: 108, fee: 162n, remaining: 7 },
    ])
  })
})

/** A salt word per order, a slot per order with remaining steps, a position per account. */
const slotsOf = (fills: readonly Fill[]): number =>
  fills.length +
  fills.filter(({ remaining }) => remaining > 0).length +
  new Set(fills.map(({ account }) => account)).size

describe('clear: batches that exceed a limit', () => {
  it('when a batch exceeds a limit, every round equals that of the slow auction', () => {
    let most = 0
    fc.assert(
      fc.property(anyBigBatch, ({ batch }) => {
        const clearing = clear(toInput(batch))
        const slow = slowClear({ ...batch, positions: positionsOf(batch) })
        most = Math.max(most, slow.rounds)
        expect(clearing.price).to.equal(slow.price)
        expect(clearing.rule).to.equal(slow.rule)
        expect(new Map(clearing.fills.map(({ seq, fill }) => [seq, fill]))).to.deep.equal(slow.fills)
        expect(clearing.pairs.length).to.equal(slow.pairs.length)
      }),
      { numRuns: 15, endOnFailure: true, examples: [[threeRounds]] },
    )
    expect(most, 'rounds').to.be.greaterThan(2)
  }).timeout(60_000)

  it('when a batch exceeds a limit, it fills at most 800 orders, and has no flips if it needs several parts', () => {
    alwaysBig((clearing, batch) => {
      expect(clearing.fills.length).to.be.at.most(BATCH_ORDERS)
      if (splitIntoParts(clearing).length === 1) return
      for (const { account, side, opening } of clearing.fills) {
        const { size } = positionsOf(batch)(account)
        const closes = side === 'LONG' ? size < 0 : size > 0
        if (closes) expect(opening).to.equal(0)
      }
    })
  })

  it('when a batch settles part by part, no part leaves bad debt or an account below IMR', () => {
    alwaysBig((clearing, batch) => {
      const positions = new Map<UserId, Position>(batch.openPositions)
      for (const { fills } of splitIntoParts(clearing)) {
        for (const [account, own] of Map.groupBy(fills, (fill) => fill.account)) {
          const verdict = settle(clearing, batch, positions.get(account) as Position, own)
          expect(verdict.ok, verdict.ok ? '' : verdict.refusal.code).to.equal(true)
          if (verdict.ok) positions.set(account, verdict.value.position)
        }
      }
      expect(sum([...positions.values()].map(({ size }) => size))).to.equal(
        sum([...batch.openPositions.values()].map(({ size }) => size)),
      )
    })
  })
})

function settle(
  { price }: Cleared,
  { spec, oracle, fundingIndex, orders }: AnyBatch,
  before: Position,
  own: Fill[],
) {
  const fills = own.map(({ seq, side, fill, taker }) => {
    const { limit, leverage } = orders[seq - 1] as (typeof orders)[number]
    const basis = openingBasis(spec, { side, limit }, price, oracle)
    return { side, price, steps: fill, takerSteps: taker, leverage, basis }
  })
  return settleAccount(spec, before, fills, { ...spec, oracle, fundingIndex })
}
