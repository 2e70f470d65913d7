/** What the fills of a batch hold until they are mined covers what the contract debits for them. */
import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { byAccount } from '../../../domain/auction/batch.ts'
import type { PlannedFill } from '../../../domain/auction/batch-plan.ts'
import type { Fill } from '../../../domain/auction/clearing.ts'
import { MarketBook } from '../../../domain/book/market-book.ts'
import type { MarketSpec } from '../../../domain/market/market.ts'
import { withheldBy } from '../../../domain/orders/open-order.ts'
import { openingBasis } from '../../../domain/positions/position.ts'
import { type AccountSettlement, settleAccount } from '../../../domain/settlement/settle-account.ts'
import { ONE, type Price, type Quote, type Seq, type Ticks, type UserId } from '../../../domain/units.ts'
import { rate } from '../../support/markets.ts'
import { type AnyBatch, AS_OF, anyBatch, positionsOf } from '../support/any-auction.ts'
import { type Planned, planOf } from '../support/planned.ts'
import { NO_FUNDING, orders, roundMarket } from '../support/resting.ts'

interface SettledFill {
  readonly account: UserId
  readonly seq: Seq
  readonly held: bigint
  /** Of the steps that the fill opens. */
  readonly debit: bigint
  readonly freeDelta: bigint
}

/** Settles the matched parts as the contract does. */
function settledFills({ outcome, plan, before }: Planned, batch: AnyBatch): SettledFill[] {
  const { matched } = outcome
  if (matched === null) return []
  const { spec, oracle, fundingIndex } = batch
  const terms = { oracle, fundingIndex, makerFee: spec.makerFee, takerFee: spec.takerFee }
  const positions = new Map(batch.openPositions)
  const { price } = matched.clearing
  const fillOf = ({ seq, fill, taker }: Fill) => {
    const { side, price: limit, leverage } = before.get(seq) as NonNullable<ReturnType<typeof before.get>>
    const basis = openingBasis(spec, { side, limit }, price, oracle)
    return { side, price, steps: fill, takerSteps: taker, leverage, basis }
  }
  const planned = plan.batch?.fills as readonly PlannedFill[]
  let at = 0
  return matched.parts.flatMap(({ fills }) =>
    byAccount(fills).flatMap((run) => {
      const { account } = run[0] as Fill
      const from = positions.get(account) ?? positionsOf(batch)(account)
      const verdict = settleAccount(spec, from, run.map(fillOf), terms)
      const { position, results } = (verdict as { value: AccountSettlement }).value
      positions.set(account, position)
      return results.map(({ added, fee, closingFee, freeDelta }, index) => ({
        ...{ account, seq: (run[index] as Fill).seq, freeDelta },
        ...{ held: BigInt(planned[at++]?.held ?? -1), debit: added + fee - closingFee },
      }))
    }),
  )
}

const sumOf = <T>(values: Iterable<T>, amount: (value: T) => bigint): bigint =>
  [...values].reduce((sum, value) => sum + amount(value), 0n)

/** Maker and taker rates are equal, so that a resting order pays what its allowance is computed at. */
const withEqualFees = (batch: AnyBatch): AnyBatch => ({
  ...batch,
  spec: { ...batch.spec, makerFee: batch.spec.takerFee },
})

describe('held amounts', () => {
  it('when any batch is planned, each fill holds at least its debit, and no account withholds more than its free balance', () => {
    const seen = { fills: 0, beyond: 0, unaffordable: 0 }
    fc.assert(
      fc.property(
        anyBatch({ minOrders: 5 }).map(withEqualFees),
        fc.constantFrom(0n, 1n, 10n ** 30n),
        (batch, spare) => {
          const before = new Map<UserId, bigint>()
          const fundsOf = (account: UserId) => {
            const reserved = before.get(account) as Quote
            return { free: (reserved + spare) as Quote, reserved }
          }
          for (const order of planOf(batch).before.values())
            before.set(order.account, (before.get(order.account) ?? 0n) + withheldBy(order))
          const planned = planOf(batch, fundsOf)
          const fills = settledFills(planned, batch)
          for (const { seq, held, debit } of fills)
            expect(held >= debit, `order ${seq} holds ${held} of ${debit}`).to.equal(true)
          for (const account of before.keys()) {
            const after = [...planned.after.values()].filter((order) => order.account === account)
            const withheld = sumOf(after, withheldBy)
            const { free } = fundsOf(account)
            expect(withheld <= free, `account ${account} withholds ${withheld} of ${free}`).to.equal(true)
            const own = fills.filter((fill) => fill.account === account)
            const left = free + sumOf(own, ({ freeDelta }) => freeDelta)
            const reserved = sumOf(after, (order) => order.reserved)
            expect(reserved <= left, `account ${account} reserves ${reserved} of ${left}`).to.equal(true)
          }
          for (const order of planned.after.values())
            expect(order.reserved >= 0n && order.held >= 0n).to.equal(true)
          seen.fills += fills.length
          seen.unaffordable += planned.plan.rows.filter(
            (row) => row.kind === 'order_ended' && row.reason === 'INSUFFICIENT_MARGIN',
          ).length
          seen.beyond += fills.filter(({ seq }) => {
            const { side, price, reservedPrice } = planned.before.get(seq) as NonNullable<
              ReturnType<typeof planned.before.get>
            >
            return (
              side === 'SHORT' && price > 0 && reservedPrice < (planned.plan.batch?.clearing.price as Ticks)
            )
          }).length
        },
      ),
      { numRuns: 500 },
    )
    expect(Math.min(...Object.values(seen)), JSON.stringify(seen)).to.be.greaterThan(20)
  })

  it('when any batch is planned, a book that follows its rows has the orders that the plan stores', () => {
    fc.assert(
      fc.property(anyBatch({ minOrders: 5 }).map(withEqualFees), (batch) => {
        const { before, after, plan } = planOf(batch)
        const followed = new MarketBook(batch.spec, [...before.values()])
        for (const row of plan.rows) followed.apply(1 as Seq, row)
        const loaded = new MarketBook(batch.spec, [...after.values()])
        const bySeq = (book: MarketBook) => book.book.orders().toSorted((a, b) => a.seq - b.seq)
        expect(bySeq(followed)).to.deep.equal(bySeq(loaded))
      }),
      { numRuns: 300 },
    )
  })

  describe('when a sell of 1,000 fills 999 at twice its reserved price', () => {
    const spec: MarketSpec = { ...roundMarket, makerFee: rate('0.0005'), takerFee: rate('0.0005') }
    const [sell, buy] = orders('A sell 100 x1000 by 1\nB buy 200 x999 by 2').all
    const reserved = { ...sell, reservedPrice: 111 as Ticks } as typeof sell
    const batch: AnyBatch = {
      ...{ spec, openPositions: new Map(), fundingIndex: NO_FUNDING, oracle: (200n * ONE) as Price },
      ...{ standingSeq: 0 as Seq, priceProtection: rate('0.01'), asOf: AS_OF },
      orders: [reserved, buy] as AnyBatch['orders'],
    }

    it('it holds the fee at the clearing price', () => {
      const [fill] = settledFills(planOf(batch), batch).filter(({ account }) => account === 1)
      expect(fill?.held).to.equal(fill?.debit)
    })
  })
})
