/** The laws of an auction (risk research B4) on conservation of money in its settlement. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { Cleared, Fill } from '../../../domain/auction/clearing.ts'
import type { RestingOrder } from '../../../domain/book/book.ts'
import { type MarketSpec, notionalAt } from '../../../domain/market/market.ts'
import { reservationPerStep } from '../../../domain/orders/reservation.ts'
import {
  marginOf,
  openingBasis,
  type Position,
  type PositionFill,
} from '../../../domain/positions/position.ts'
import { type AccountSettlement, settleAccount } from '../../../domain/settlement/settle-account.ts'
import type { Price, Steps, Ticks } from '../../../domain/units.ts'
import { type AnyBatch, anyBatch, positionsOf } from '../support/any-auction.ts'
import { checkClearedBatches, orderOf } from '../support/cleared-batches.ts'

/** Settles the batch account by account, in the order of the fills. */
function settle(clearing: Cleared, batch: AnyBatch) {
  const { spec, oracle, fundingIndex } = batch
  const terms = { oracle, fundingIndex, makerFee: spec.makerFee, takerFee: spec.takerFee }
  return [...Map.groupBy(clearing.fills, (fill) => fill.account)].map(([account, own]) => {
    const before = positionsOf(batch)(account)
    const fills = own.map((fill) => positionFill(spec, clearing, orderOf(batch, fill.seq), fill, oracle))
    return { account, before, own, verdict: settleAccount(spec, before, fills, terms) }
  })
}

const positionFill = (
  spec: MarketSpec,
  { price }: Cleared,
  { side, limit, leverage }: RestingOrder,
  { fill, taker }: Fill,
  oracle: Price,
): PositionFill => ({
  side,
  price,
  steps: fill,
  takerSteps: taker,
  leverage,
  basis: openingBasis(spec, { side, limit }, price, oracle),
})

describe('law 16', () => {
  it('when any batch clears, free balances, margins, profit at any price and fees add up to zero', () => {
    checkClearedBatches((clearing, batch) => {
      const { spec, fundingIndex } = batch
      const worth = (position: Position, price: Ticks): bigint => {
        const value = notionalAt(spec, price, Math.abs(position.size) as Steps)
        const profit = position.size > 0 ? value - position.entryNotional : position.entryNotional - value
        return position.size === 0
          ? marginOf(position, fundingIndex)
          : marginOf(position, fundingIndex) + profit
      }
      for (const price of [clearing.price, clearing.lo, clearing.hi]) {
        let change = 0n
        let sizes = 0
        for (const { before, verdict } of settle(clearing, batch)) {
          const { position, freeDelta, fee } = (verdict as { value: AccountSettlement }).value
          change += worth(position, price) - worth(before, price) + freeDelta + fee
          sizes += position.size - before.size
        }
        expect(change).to.equal(0n)
        expect(sizes).to.equal(0)
      }
    })
  })
})

describe('law 18', () => {
  it('when any batch clears, no fill leaves bad debt, and no opening fill leaves its account below IMR', () => {
    checkClearedBatches(
      (clearing, batch) => {
        for (const { account, own, verdict } of settle(clearing, batch)) {
          expect(verdict.ok, `account ${account}: ${verdict.ok ? '' : verdict.refusal.code}`).to.equal(true)
          const { results } = (verdict as { value: AccountSettlement }).value
          expect(results.map(({ closed, opened }) => [closed, opened])).to.deep.equal(
            own.map(({ reducing, opening }) => [reducing, opening]),
          )
        }
      },
      anyBatch({ minOrders: 8, accounts: 6 }),
    )
  })

  it('when any batch clears, no opening fill debits more than its order reserved', () => {
    checkClearedBatches((clearing, batch) => {
      for (const { own, verdict } of settle(clearing, batch)) {
        const { results } = (verdict as { value: AccountSettlement }).value
        for (const [i, { added, fee, closingFee }] of results.entries()) {
          const { opening, seq } = own[i] as Fill
          if (opening === 0) continue
          const order = orderOf(batch, seq)
          const held = reservationPerStep(batch.spec, order) * BigInt(order.openable)
          expect(added + fee - closingFee <= held, `order ${seq}`).to.equal(true)
        }
      }
    })
  })
})
