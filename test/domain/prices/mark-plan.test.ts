import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { MarketBook, waitingOrder } from '../../../domain/book/market-book.ts'
import { priceBand } from '../../../domain/market/band.ts'
import { priceOf } from '../../../domain/market/market.ts'
import { isReservable, type OpenOrder, reservable, withheldBy } from '../../../domain/orders/open-order.ts'
import { isAlwaysReduceOnly, isTriggered, type OrderType } from '../../../domain/orders/order.ts'
import { reservationPerStep, reservationsOf, reservedPriceOf } from '../../../domain/orders/reservation.ts'
import { FLAT, type Position } from '../../../domain/positions/position.ts'
import { type MarkPlanInput, planMark } from '../../../domain/prices/mark-plan.ts'
import type { Price, Quote, Seq, Ticks, UserId } from '../../../domain/units.ts'
import { isBelowRequirement } from '../../support/margin-requirement.ts'
import { type AnyBatch, AS_OF, anyBatch } from '../support/any-auction.ts'
import { bySeq, openOrder, placedRow } from '../support/open-orders.ts'

const CONDITIONAL = {
  MARKET: ['STOP_MARKET', 'TAKE_PROFIT_MARKET', 'STOP_LOSS_MARKET'],
  LIMIT: ['STOP_LIMIT', 'TAKE_PROFIT_LIMIT', 'STOP_LOSS_LIMIT'],
} as const

/** Two of three orders wait for triggers around the middle. Their reservations are those of an acceptance. */
function liveOrders({ spec, oracle, orders, openPositions }: AnyBatch): OpenOrder[] {
  const middle = Number(oracle / spec.tick)
  const band = priceBand(spec, oracle)
  const live = orders
    .filter(({ forced }) => !forced)
    .map((order): OpenOrder => {
      const open = openOrder(spec, order)
      if (order.seq % 3 === 0) return { ...open, reservedPrice: reservedPriceOf(spec, open, band) }
      const type: OrderType = CONDITIONAL[order.type][
        order.seq % 3 === 1 ? order.leverage % 3 : 0
      ] as OrderType
      const trigger = Math.max(1, middle + (order.seq % 7) - 3) as Ticks
      const terms = { ...open, type, trigger, reduceOnly: order.reduceOnly || isAlwaysReduceOnly(type) }
      return { ...terms, status: 'PENDING_TRIGGER', reservedPrice: reservedPriceOf(spec, terms, band) }
    })
  return [...Map.groupBy(live, ({ account }) => account)].flatMap(([account, own]) => {
    const size = (openPositions.get(account) ?? FLAT).size
    const reservations = new Map(reservationsOf(spec, size, own.map(reservable)).map((one) => [one.seq, one]))
    return own.map((order) => {
      const { openable = 0, amount = 0n } = reservations.get(order.seq) ?? {}
      return { ...order, openable, reserved: amount } as OpenOrder
    })
  })
}

const HEAD = 1_000

interface Marked {
  readonly before: readonly OpenOrder[]
  readonly hits: readonly OpenOrder[]
  readonly plan: ReturnType<typeof planMark>
  readonly after: readonly OpenOrder[]
  readonly input: MarkPlanInput
}

/** `slack`: the balance beyond its reservations that each account has, in thousandths of them. */
function mark(batch: AnyBatch, oracle: Price, at: Price, slack: number): Marked {
  const { spec, openPositions } = batch
  const before = liveOrders(batch)
  const hits = before
    .filter((order) => order.status === 'PENDING_TRIGGER' && isTriggered(order, at, spec.tick))
    .sort((a, b) => a.seq - b.seq)
  const accounts = new Set(hits.map(({ account }) => account))
  const orders = before.filter(({ account }) => accounts.has(account))
  const reservedOf = (account: UserId): bigint =>
    orders.reduce((sum, order) => (order.account === account ? sum + withheldBy(order) : sum), 0n)
  const input: MarkPlanInput = {
    ...{ spec, head: HEAD, batchId: 7, orders, triggered: hits.map(({ seq }) => seq) },
    prices: { oracle: { price: oracle, observedAt: AS_OF }, mark: at, at: AS_OF },
    positions: (account: UserId): Position => openPositions.get(account) ?? FLAT,
    fundsOf: (account: UserId) => {
      const reserved = reservedOf(account) as Quote
      return { free: (reserved + (reserved * BigInt(slack)) / 1000n) as Quote, reserved }
    },
    averages: null,
  }
  const plan = planMark(input)
  const changed = new Map(plan.orders.map((order) => [order.orderId, order]))
  return { before, hits, plan, after: before.map((order) => changed.get(order.orderId) ?? order), input }
}

const anyMark = fc
  .tuple(
    anyBatch({ accounts: 3, maxOrders: 18 }),
    fc.integer({ min: -4, max: 4 }),
    fc.integer({ min: -30, max: 30 }),
  )
  .chain(([batch, ticks, oracle]) =>
    fc.constantFrom(0, 1, 50, 1_000, 100_000).map((slack) => {
      const { spec } = batch
      const moved = batch.oracle + (batch.oracle * BigInt(oracle)) / 1000n
      const top = spec.kind === 'binary_future' ? 10n ** 18n - spec.tick : moved
      const price = (moved > top ? top : moved) as Price
      const at = price + BigInt(ticks) * spec.tick
      return mark(batch, price, (at > 0n ? at : spec.tick) as Price, slack)
    }),
  )

describe('planMark', () => {
  it('when any mark triggers orders, reservations are exact, affordable, and equal to an acceptance at the new seqs', () => {
    const seen = { triggered: 0, ended: 0, reserved: 0, short: 0 }
    fc.assert(
      fc.property(anyMark, ({ before, hits, plan, after, input }) => {
        const { spec } = input
        const accounts = new Set(hits.map(({ account }) => account))
        for (const account of accounts) {
          const own = after.filter((order) => order.account === account)
          const live = own.filter(isReservable)
          const { free, reserved } = input.fundsOf(account)
          const delta = plan.reserved.get(account) ?? 0n
          const total = own.reduce((sum, order) => sum + withheldBy(order), 0n)
          expect(total).to.equal(reserved + delta)
          const hasPlain = hits.some((order) => order.account === account && !order.reduceOnly)
          if (!hasPlain) continue
          expect(total <= free, 'the account can pay').to.equal(true)
          const due = new Map(
            reservationsOf(spec, input.positions(account).size, live.map(reservable)).map((one) => [
              one.seq,
              one,
            ]),
          )
          // An ended order may have had capacity that no other order gets in exchange; no order opens without a reservation.
          for (const order of live)
            expect(order.openable >= (due.get(order.seq)?.openable ?? 0)).to.equal(true)
        }
        for (const order of after) {
          const perStep =
            order.openable === 0 ? 0n : reservationPerStep(spec, { ...order, limit: order.price })
          expect(order.reserved, order.orderId).to.equal(perStep * BigInt(order.openable))
        }
        seen.triggered += hits.length
        seen.ended += plan.rows.filter(({ kind }) => kind === 'order_ended').length
        seen.reserved += plan.rows.filter(({ kind }) => kind === 'reservation_changed').length
        seen.short += after.filter(({ statusReason }) => statusReason === 'INSUFFICIENT_MARGIN').length
        expect(before).to.have.length(after.length)
      }),
      { numRuns: 600 },
    )
    expect(Math.min(...Object.values(seen)), JSON.stringify(seen)).to.be.greaterThan(5)
  })

  it("when any mark reaches orders, each has one trigger row, by acceptance seq, and the row's sequence is its new seq", () => {
    fc.assert(
      fc.property(anyMark, ({ hits, plan, after }) => {
        expect(plan.rows[0]?.kind).to.equal('prices_updated')
        const triggeredRows = plan.rows.filter((row) => row.kind === 'order_triggered')
        expect(triggeredRows.map((row) => row.order_id)).to.deep.equal(hits.map(({ orderId }) => orderId))
        for (const [at, row] of triggeredRows.entries()) {
          expect(plan.rows.indexOf(row)).to.equal(1 + at)
          const order = after.find(({ orderId }) => orderId === row.order_id) as OpenOrder
          expect(order.seq).to.equal(HEAD + 2 + at)
          expect(order.triggered).to.deep.include({ at: AS_OF, batch_id: 7 })
          expect(order.status).to.be.oneOf(['OPEN', 'CANCELLED'])
        }
        for (const order of after) {
          if (!hits.some(({ orderId }) => orderId === order.orderId)) expect(order.triggered).to.equal(null)
        }
      }),
    )
  })

  it('when any mark triggers a reduce-only order, it enters the book exactly if there is a position to reduce', () => {
    fc.assert(
      fc.property(anyMark, ({ hits, after, input }) => {
        for (const { orderId, reduceOnly, side, account } of hits) {
          if (!reduceOnly) continue
          const { size } = input.positions(account)
          const reduces = side === 'LONG' ? size < 0 : size > 0
          const order = after.find((one) => one.orderId === orderId) as OpenOrder
          expect([order.status, order.statusReason]).to.deep.equal(
            reduces ? ['OPEN', null] : ['CANCELLED', 'REDUCE_ONLY_NO_POSITION'],
          )
          expect(order.reserved).to.equal(0n)
        }
      }),
    )
  })

  it('when any mark triggers a limit order, it ends with MARGIN_REQUIREMENT exactly if its opening share is below IMR at its limit', () => {
    const seen = { below: 0, open: 0 }
    fc.assert(
      fc.property(anyMark, ({ hits, after, input }) => {
        const { spec, prices, positions } = input
        for (const { orderId, reduceOnly, price, account } of hits) {
          const order = after.find((one) => one.orderId === orderId) as OpenOrder
          const isBelow = isBelowRequirement(spec, order, prices.oracle.price)
          const isEnded = order.statusReason === 'MARGIN_REQUIREMENT'
          if (reduceOnly || price === 0 || !isBelow) expect(isEnded).to.equal(false)
          else if (positions(account).size === 0) expect(isEnded).to.equal(true)
          if (isEnded)
            expect([order.status, order.openable, order.reserved]).to.deep.equal(['CANCELLED', 0, 0n])
          if (order.status === 'OPEN' && price !== 0 && order.openable > 0) expect(isBelow).to.equal(false)
          seen.below += isEnded ? 1 : 0
          seen.open += order.status === 'OPEN' && !reduceOnly && price !== 0 ? 1 : 0
        }
      }),
      { numRuns: 1000 },
    )
    expect(Math.min(seen.below, seen.open), JSON.stringify(seen)).to.be.greaterThan(5)
  })

  it('when the rows of any mark are applied, the market book equals one that is loaded from the orders', () => {
    fc.assert(
      fc.property(anyMark, ({ before, plan, after, input }) => {
        const { spec } = input
        const fed = new MarketBook(spec, [])
        for (const order of before.toSorted((a, b) => a.seq - b.seq)) fed.apply(order.seq, placedRow(order))
        expect(fed.waiting.orders()).to.deep.equal(new MarketBook(spec, before).waiting.orders())
        for (const [at, row] of plan.rows.entries()) fed.apply(HEAD + 1 + at, row)
        const loaded = new MarketBook(spec, after)
        expect(fed.book.orders()).to.deep.equal(loaded.book.orders())
        expect(fed.waiting.orders()).to.deep.equal(loaded.waiting.orders())
        for (const order of after.filter(({ status }) => status === 'PENDING_TRIGGER')) {
          expect(fed.waiting.get(order.seq)).to.deep.equal(waitingOrder(order))
        }
      }),
    )
  })

  it('when no order is triggered, it writes the prices and nothing else', () => {
    fc.assert(
      fc.property(anyBatch(), (batch) => {
        const price = priceOf(batch.spec, 50 as Ticks)
        const prices = { oracle: { price, observedAt: AS_OF }, mark: price, at: AS_OF }
        const input = { spec: batch.spec, prices, head: HEAD, batchId: 1, triggered: [] as Seq[], orders: [] }
        const plan = planMark({
          ...input,
          positions: () => FLAT,
          fundsOf: () => ({ free: 0n as Quote, reserved: 0n as Quote }),
          averages: null,
        })
        expect(plan.rows.map(({ kind }) => kind)).to.deep.equal(['prices_updated'])
        expect([plan.orders, [...plan.reserved]]).to.deep.equal([[], []])
        expect(bySeq(plan.orders).size).to.equal(0)
      }),
      { numRuns: 5 },
    )
  })
})
