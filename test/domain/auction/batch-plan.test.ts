import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import type { Cleared } from '../../../domain/auction/clearing.ts'
import { splitIntoParts } from '../../../domain/auction/parts.ts'
import type { RestingOrder } from '../../../domain/book/book.ts'
import { DEFAULT_PRICE_PROTECTION } from '../../../domain/market/price-protection.ts'
import { type OpenOrder, withheldBy } from '../../../domain/orders/open-order.ts'
import { reservationPerStep } from '../../../domain/orders/reservation.ts'
import { type Millis, ONE, type Quote, type Seq, type Steps, type UserId } from '../../../domain/units.ts'
import { type AnyBatch, AS_OF, anyBatch } from '../support/any-auction.ts'
import { openOrder } from '../support/open-orders.ts'
import { type Planned, planOf } from '../support/planned.ts'
import { NO_FUNDING, oracle100, orders, positionAt, roundMarket } from '../support/resting.ts'

/** All accounts are flat, and the oracle price is 100. */
const calm: Omit<AnyBatch, 'orders'> = {
  ...{ spec: roundMarket, openPositions: new Map(), fundingIndex: NO_FUNDING },
  ...{
    oracle: oracle100,
    standingSeq: 0 as Seq,
    priceProtection: DEFAULT_PRICE_PROTECTION.perpetual,
    asOf: AS_OF,
  },
}

/** The orders of a table, accepted 100 ms ago. */
const recent = (book: string) =>
  orders(book).all.map((order) => ({ ...order, acceptedAt: (AS_OF - 100) as Millis }))

const turn = (book: string): Planned => planOf({ ...calm, orders: recent(book) })

const rowsOf = ({ plan }: Planned): string[] =>
  plan.rows.map((row) => ('order_id' in row ? `${row.kind} ${row.order_id}` : row.kind))
const orderAt = ({ after }: Planned, seq: number): OpenOrder => after.get(seq as never) as OpenOrder

describe('planBatch', () => {
  it('when a fill opens, its amount moves from reserved to held, and nothing is released', () => {
    const planned = turn('A buy 100 x10\nB sell 100 x4')
    expect(rowsOf(planned)).to.deep.equal(['batch_cleared'])
    const [bought, sold] = [orderAt(planned, 1), orderAt(planned, 2)]
    const perStep = reservationPerStep(roundMarket, { ...bought, limit: bought.price })
    expect(bought).to.include({
      status: 'OPEN',
      settling: 4,
      openable: 6,
      held: perStep * 4n,
      reserved: perStep * 6n,
    })
    expect(sold).to.include({ status: 'OPEN', settling: 4, openable: 0, reserved: 0n })
    expect([...planned.plan.reserved]).to.deep.equal([])
  })

  it('when a limit order stays in the book, it gets a partial slot, and when an order fills at once, it gets none', () => {
    const { plan } = turn('A buy 100 x10\nB sell 100 x4')
    expect(plan.batch?.fills.map(({ order_id, partial_slot }) => [order_id, partial_slot])).to.deep.equal([
      ['1-1', 0],
      ['1-2', null],
    ])
  })

  it('when a filled order has unused steps, it gets a partial slot, because the chain sees it as partly filled', () => {
    const resting = recent('A buy 100 x10\nB sell 100 x10').map((order) =>
      order.side === 'LONG' ? { ...order, unused: 5 as Steps } : order,
    )
    const { plan } = planOf({ ...calm, orders: resting })
    expect(plan.batch?.fills.map(({ order_id, partial_slot }) => [order_id, partial_slot])).to.deep.equal([
      ['1-1', 0],
      ['1-2', null],
    ])
    const [part] = splitIntoParts(plan.batch?.clearing as Cleared)
    const without = splitIntoParts(turn('A buy 100 x10\nB sell 100 x10').plan.batch?.clearing as Cleared)[0]
    expect(part?.newSlots).to.equal((without?.newSlots ?? 0) + 1)
  })

  it('when a market order has a remainder, the remainder closes with the batch and its reservation is released', () => {
    const planned = turn('A buy market x10\nB sell 100 x4')
    const order = orderAt(planned, 1)
    expect(order).to.include({ status: 'OPEN', closingReason: 'MARKET_REMAINDER', settling: 4, reserved: 0n })
    const cleared = planned.plan.rows.find(({ kind }) => kind === 'batch_cleared')
    expect(cleared)
      .to.have.property('closing')
      .that.deep.equals([{ order_id: '1-1', reason: 'MARKET_REMAINDER' }])
    const perStep = reservationPerStep(roundMarket, { ...order, limit: order.price })
    expect([...planned.plan.reserved]).to.deep.equal([[1, -6n * perStep]])
  })

  it('when a market order meets no order or an order expires, it ends without a batch', () => {
    const planned = turn('A buy market x10\nB sell 110 x4')
    expect(rowsOf(planned)).to.deep.equal(['orders_protected', 'order_ended 1-1'])
    expect(orderAt(planned, 1)).to.include({
      status: 'CANCELLED',
      statusReason: 'MARKET_REMAINDER',
      endedAt: AS_OF,
    })
    expect(planned.plan.batch).to.equal(null)
  })

  it('when market orders take part, the first row has their protections with the inputs', () => {
    const book = 'A buy market x10\nB sell 100 x40\nC sell 101 x20'
    const { plan, outcome } = planOf({ ...calm, standingSeq: 3 as Seq, orders: recent(book) })
    const [row] = plan.rows
    expect(row).to.deep.equal({
      ...{ kind: 'orders_protected', as_of: AS_OF, rule_version: 3, standing_seq: 3 },
      ...{ oracle_price: oracle100.toString(), oracle_at: AS_OF },
      price_protection: DEFAULT_PRICE_PROTECTION.perpetual.toString(),
      orders: outcome.clearing.protections.map(({ best, level, reference, price }) => ({
        ...{ order_id: '1-1', user_id: 1, best, level, reference: reference.toString(), price },
      })),
    })
    expect(row).to.have.nested.property('orders[0].price', 102)
  })

  it('when only limit orders take part, no row has protections', () => {
    expect(rowsOf(turn('A buy 100 x4\nB sell 100 x4'))).to.deep.equal(['batch_cleared'])
  })

  describe('when a sell takes over the closing of a position from an older one', () => {
    // A would have closed the long of 10 and reserved nothing. B, which would have opened, meets C and closes
    // it first.
    const book = 'A sell 104 x10 by 1 reserves 0\nB sell 100 x10 by 1\nC buy 100 x10 by 2'
    const position = positionAt(roundMarket, { size: 10, entry: 100, margin: 100n * ONE })
    const batch = { ...calm, orders: recent(book), openPositions: new Map([[1 as UserId, position]]) }
    const pays = (free: bigint) => () => ({ free: free as Quote, reserved: 0n as Quote })

    it('it reserves for the older one as an opening order', () => {
      const planned = planOf(batch, pays(10n ** 30n))
      expect(rowsOf(planned)).to.deep.equal([
        'batch_cleared',
        'reservation_changed 1-1',
        'reservation_changed 1-2',
      ])
      expect(orderAt(planned, 1).openable).to.equal(10)
      expect(orderAt(planned, 2)).to.include({ openable: 0, reserved: 0n, held: 0n })
    })

    it('it ends the older one if the account cannot pay for it', () => {
      const { reserved } = openOrder(roundMarket, batch.orders[1] as RestingOrder)
      const poor = { free: reserved, reserved: (reserved + 1n) as Quote }
      const planned = planOf(batch, (account) => (account === 1 ? poor : pays(10n ** 30n)()))
      expect(rowsOf(planned)).to.deep.equal(['batch_cleared', 'order_ended 1-1', 'reservation_changed 1-2'])
      expect(orderAt(planned, 1)).to.include({
        status: 'CANCELLED',
        statusReason: 'INSUFFICIENT_MARGIN',
        reserved: 0n,
      })
    })
  })

  describe('when a batch closes or turns a position', () => {
    const position = positionAt(roundMarket, { size: 10, entry: 100, margin: 100n * ONE })
    const openPositions = new Map([[1 as UserId, position]])
    const closedBy = (planned: Planned) =>
      [...planned.after.values()].filter((order) => order.closedBy !== null).map(({ seq }) => seq)

    for (const [name, steps, expected] of [
      ['reduces the position', 9, []],
      ['closes the position', 10, [1]],
      ['turns the position', 14, [1]],
    ] as const) {
      it(`if it ${name}, ${expected.length} of its account's reduce-only orders leave the book`, () => {
        const book = `A sell 104 x10 by 1 reduce-only
          B buy 96 x10 by 1 reduce-only
          C sell 104 x10 by 3 reduce-only
          D sell 100 x${steps} by 1
          E buy 100 x${steps} by 2`
        const planned = planOf({ ...calm, openPositions, orders: recent(book) })
        expect(closedBy(planned)).to.deep.equal(expected)
        for (const seq of expected) {
          expect(orderAt(planned, seq)).to.include({ status: 'OPEN', closingReason: 'POSITION_CLOSED' })
          expect(orderAt(planned, seq).closedBy).to.equal('1-7-1-4')
        }
        const cleared = planned.plan.rows.find((row) => row.kind === 'batch_cleared')
        const closing = expected.map((seq) => ({
          order_id: `1-${seq}`,
          reason: 'POSITION_CLOSED',
          closed_by: '1-7-1-4',
        }))
        expect(cleared?.closing).to.deep.equal(closing)
      })
    }

    it('it takes out the remainder of an order that closes the position, and not an order that the fills complete', () => {
      const book = `A sell 100 x4 by 1 reduce-only
        B sell 100 x10 by 1 reduce-only
        C buy 100 x10 by 2`
      const planned = planOf({ ...calm, openPositions, orders: recent(book) })
      expect(orderAt(planned, 1)).to.include({ settling: 4, closingReason: null })
      expect(orderAt(planned, 2)).to.include({ settling: 6, closingReason: 'POSITION_CLOSED' })
    })
  })

  it('when nothing changes, it writes nothing', () => {
    const { plan } = turn('A buy 100 x10\nB sell 101 x4')
    expect(plan).to.deep.include({ batch: null, orders: [], rows: [] })
  })

  it('when any batch is planned, withheld amounts are equal in orders, in deltas and in rows', () => {
    const seen = { fills: 0, cancels: 0, changed: 0 }
    fc.assert(
      fc.property(
        anyBatch({ maxOrders: 16 }),
        fc.bigInt({ min: 0n, max: 3n * 10n ** 21n }),
        (batch, free) => {
          const planned = planOf(batch, () => ({ free: free as Quote, reserved: 0n as Quote }))
          const deltas = new Map<number, bigint>()
          for (const [seq, { account }] of planned.before) {
            const change =
              withheldBy(orderAt(planned, seq)) - withheldBy(planned.before.get(seq) as OpenOrder)
            deltas.set(account, (deltas.get(account) ?? 0n) + change)
          }
          const recorded = new Map<number, bigint>()
          for (const row of planned.plan.rows) {
            if (!('reserved_delta' in row)) continue
            recorded.set(row.user_id, (recorded.get(row.user_id) ?? 0n) + BigInt(row.reserved_delta))
          }
          for (const [account, change] of deltas) {
            expect(planned.plan.reserved.get(account as UserId) ?? 0n).to.equal(change)
            expect(recorded.get(account) ?? 0n).to.equal(change)
          }
          for (const order of planned.after.values()) {
            const perStep = reservationPerStep(batch.spec, { ...order, limit: order.price })
            expect(order.reserved).to.equal(perStep * BigInt(order.openable))
            expect(order.held >= 0n && order.reserved >= 0n).to.equal(true)
          }
          seen.fills += planned.plan.batch?.fills.length ?? 0
          seen.cancels += planned.plan.rows.filter(({ kind }) => kind === 'order_ended').length
          seen.changed += planned.plan.rows.filter(({ kind }) => kind === 'reservation_changed').length
        },
      ),
      { numRuns: 300 },
    )
    expect(Math.min(...Object.values(seen)), JSON.stringify(seen)).to.be.greaterThan(50)
  })
})
