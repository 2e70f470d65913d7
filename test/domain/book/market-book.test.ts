import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { MarketBook } from '../../../domain/book/market-book.ts'
import type { BatchCleared, PartSettled, SettledOrder } from '../../../domain/journal/batch-rows.ts'
import type { MarketRow, PositionsMoved } from '../../../domain/journal/journal-row.ts'
import type { OpenOrder } from '../../../domain/orders/open-order.ts'
import { reservationPerStep } from '../../../domain/orders/reservation.ts'
import type { Millis, Seq, Steps, UserId } from '../../../domain/units.ts'
import { anyBatch } from '../support/any-auction.ts'
import { openOrder, placedRow } from '../support/open-orders.ts'
import { planOf } from '../support/planned.ts'
import { orders, roundMarket } from '../support/resting.ts'

const spec = roundMarket
const open = (line: string): OpenOrder => openOrder(spec, orders(line).all[0] as never)

/** A book with one buy of 10 at 100, with a reservation for all of it. */
function withOne() {
  const order = open('A buy 100 x10')
  return { order, marketBook: new MarketBook(spec, [order]) }
}

const matched = (
  order: OpenOrder,
  steps: number,
  opened: number,
  closing: readonly string[] = [],
): BatchCleared => ({
  kind: 'batch_cleared',
  ...{ batch_id: 1, as_of: 1, oracle_price: '1', oracle_at: 1, lo: 95, hi: 105, price: 100, parts: 1 },
  ...{ volume: steps, demand: steps, supply: steps, rule: 'volume' },
  fills: [
    {
      ...{ fill_id: '1-1-1-1', order_id: order.orderId, user_id: order.account, part: 1, side: order.side },
      ...{ steps, taker_steps: steps },
      held: (reservationPerStep(spec, { ...order, limit: order.price }) * BigInt(opened)).toString(),
    },
  ],
  closing: closing.map((order_id) => ({ order_id, reason: 'MARKET_REMAINDER' })),
})

const ended = (orderId: string): MarketRow => ({
  ...{ kind: 'order_ended', order_id: orderId, user_id: 1, status: 'CANCELLED', reason: 'USER_CANCELLED' },
  ...{ note: null, reserved_delta: '0', at: 1 },
})

describe('MarketBook', () => {
  it('when the book is loaded from orders, it contains exactly the orders that can match', () => {
    const open = orders('A buy 100 x10\nB buy 100 x10\nC buy 100 x10\nD buy 100 x10').all.map((one) =>
      openOrder(spec, one),
    )
    const [a, b, c, d] = open as [OpenOrder, OpenOrder, OpenOrder, OpenOrder]
    const stored: readonly OpenOrder[] = [
      { ...a, filled: 3 as Steps, settling: 2 as Steps },
      { ...b, status: 'CANCELLED', statusReason: 'USER_CANCELLED' },
      { ...c, settling: 10 as Steps },
      { ...d, closingReason: 'MARKET_REMAINDER', settling: 1 as Steps },
    ]
    const marketBook = new MarketBook(spec, stored)
    expect(marketBook.book.orders().map(({ seq, remaining }) => [seq, remaining])).to.deep.equal([[1, 5]])
    expect(marketBook.idOf(1 as Seq)).to.equal('1-1')
    expect(() => marketBook.idOf(2 as Seq)).to.throw('the order is in the book')
  })

  it('when a fill is applied, it subtracts the fill from the order and the opened steps from its reservation', () => {
    const { order, marketBook } = withOne()
    marketBook.apply(2, matched(order, 4, 3))
    expect(marketBook.book.get(order.seq)).to.include({ remaining: 6, openable: 6 })
    marketBook.apply(3, matched(order, 4, 4))
    expect(marketBook.book.get(order.seq)).to.include({ remaining: 2, openable: 2 })
    marketBook.apply(4, matched(order, 2, 0))
    expect(marketBook.book.size).to.equal(0)
  })

  it('when a batch closes an order, it removes the order', () => {
    const { order, marketBook } = withOne()
    marketBook.apply(2, matched(order, 4, 4, [order.orderId]))
    expect(marketBook.book.size).to.equal(0)
  })

  it('when an action is dropped, it returns the accounts with recomputed matched positions', () => {
    const marketBook = new MarketBook(roundMarket, [])
    const dropped = { action: 'update_funding', queue_no: 3, reason: 'FundingRateOutOfRange', at: 1 } as const
    marketBook.apply(1, { kind: 'action_dropped', ...dropped, rematched: [4, 7] })
    expect([...marketBook.drainChangedAccounts()]).to.deep.equal([4, 7])
  })

  it('when positions have changed, it returns their accounts once', () => {
    const { order, marketBook } = withOne()
    marketBook.apply(2, matched(order, 4, 4))
    expect([...marketBook.drainChangedAccounts()]).to.deep.equal([order.account])
    expect([...marketBook.drainChangedAccounts()]).to.deep.equal([])
  })

  it('when a reservation changes, it applies it, and when an order ends twice, it removes it once', () => {
    const { order, marketBook } = withOne()
    const row = { order_id: order.orderId, user_id: 1, openable: 2, reserved_price: 100, reserved_delta: '0' }
    marketBook.apply(2, { kind: 'reservation_changed', ...row })
    expect(marketBook.book.get(order.seq)?.openable).to.equal(2)
    marketBook.apply(3, ended(order.orderId))
    marketBook.apply(4, ended(order.orderId))
    expect(marketBook.book.size).to.equal(0)
  })

  it("when a batch is voided or a part rolled back, the book requests the accounts' orders and inserts their current state", () => {
    const { order, marketBook } = withOne()
    const { fills } = matched(order, 4, 4)
    const voided: MarketRow = {
      ...{ kind: 'batch_voided', batch_id: 1, from_part: 1, why: '', at: 1, fills, reopened: [] },
    }
    const settled: PartSettled = {
      ...{ kind: 'part_settled', rollback: false, batch_id: 1, part: 1, parts: 1, action_id: 1, price: 100 },
      ...{ block: 1, tx_hash: '0x', log_index: 0, at: 1, positions: [], orders: [], position_closed: [] },
      fills: fills.map((fill) => ({
        ...{ ...fill, matched: true, fee: '0', free_delta: '0', from_pending: '0', realized_pnl: '0' },
      })),
    }
    const rows: readonly MarketRow[] = [
      voided,
      { ...settled, rollback: true },
      { ...settled, fills: settled.fills.map((fill) => ({ ...fill, matched: false })) },
    ]
    for (const row of rows) {
      marketBook.apply(2, row)
      expect(marketBook.book.size).to.equal(0)
      // Rows that follow in the same replay are in the orders that the caller reads.
      marketBook.apply(3, { ...placedRow(order), order_id: '1-3' })
      marketBook.apply(4, matched(order, 4, 4))
      expect(marketBook.book.size).to.equal(0)
      expect([...marketBook.drainStaleAccounts()]).to.deep.equal([order.account])
      expect([...marketBook.drainChangedAccounts()]).to.deep.equal([order.account])
      marketBook.insertAll([order])
      expect(marketBook.book.orders().map(({ seq }) => seq)).to.deep.equal([order.seq])
    }
    marketBook.apply(5, settled)
    expect([...marketBook.drainStaleAccounts()]).to.deep.equal([])
  })

  it('when positions move, it removes the orders that end and requests the positions, without their orders', () => {
    const { order, marketBook } = withOne()
    const ended: SettledOrder = {
      ...{ order_id: order.orderId, user_id: 1, reserved_delta: '0' },
      status: 'CANCELLED',
      reason: 'POSITION_CLOSED',
    }
    const position = {
      ...{ user_id: 1, size_delta: -5, entry_notional_delta: '0', folded_margin_delta: '0' },
      ...{ leverage_before: 5, leverage_after: 5 },
    }
    const moved: PositionsMoved = {
      ...{
        kind: 'positions_moved',
        cause: 'inherited',
        rollback: false,
        block: 1,
        tx_hash: '0x',
        log_index: 0,
      },
      ...{ at: 1, positions: [position], balances: [], orders: [ended] },
    }
    marketBook.apply(2, moved)
    expect([marketBook.book.size, marketBook.drainStaleAccounts().size]).to.deep.equal([0, 0])
    expect([...marketBook.drainChangedAccounts()]).to.deep.equal([1])
    marketBook.apply(3, { ...moved, rollback: true })
    expect([...marketBook.drainStaleAccounts()]).to.deep.equal([1])
  })

  it('when a part closes a position, it removes the orders that protected it, open or waiting', () => {
    const marketBook = new MarketBook(spec, [])
    marketBook.apply(1, { ...placedRow(open('A sell 105 x10')), type: 'LIMIT', reduce_only: true })
    marketBook.apply(2, {
      ...placedRow(open('A sell 105 x10')),
      ...{ order_id: '1-2', type: 'STOP_LIMIT', status: 'PENDING_TRIGGER', reduce_only: true, trigger: 95 },
    })
    const gone = { user_id: 1, status: 'CANCELLED', reason: 'POSITION_CLOSED', reserved_delta: '0' } as const
    marketBook.apply(3, {
      ...{ kind: 'part_settled', rollback: false, batch_id: 1, part: 1, parts: 1, action_id: 1, price: 100 },
      ...{ block: 1, tx_hash: '0x', log_index: 0, at: 1, fills: [], positions: [] },
      orders: ['1-1', '1-2'].map((order_id) => ({ order_id, ...gone })),
      position_closed: ['1-1', '1-2'],
    })
    expect([marketBook.book.size, marketBook.waiting.size]).to.deep.equal([0, 0])
  })

  it('when orders are open and waiting, it returns both kinds by account, and the expired orders of both kinds', () => {
    const marketBook = new MarketBook(spec, [])
    marketBook.apply(1, { ...placedRow(open('A buy 100 x10')), alive_until: 10 })
    const waits = { order_id: '1-2', type: 'STOP_LIMIT', status: 'PENDING_TRIGGER', trigger: 105 } as const
    marketBook.apply(2, { ...placedRow(open('A buy 100 x10')), ...waits, alive_until: 9 })
    expect(marketBook.ordersOf(1 as UserId).map(({ seq }) => seq)).to.deep.equal([1, 2])
    expect(marketBook.get(2 as Seq)).to.include({ trigger: 105 })
    expect(marketBook.overdue(10_000 as Millis)).to.deep.equal([{ seq: 2, reason: 'EXPIRED' }])
    expect(marketBook.overdue(10_001 as Millis).map(({ seq }) => seq)).to.deep.equal([1, 2])
    marketBook.apply(3, ended('1-2'))
    expect(marketBook.waiting.size).to.equal(0)
  })

  it('when open or waiting orders are above the highest leverage, they end, up to the bound and after expired orders', () => {
    const marketBook = new MarketBook(spec, [])
    const row = placedRow(open('A buy 100 x10'))
    const waits = { type: 'STOP_LIMIT', status: 'PENDING_TRIGGER', trigger: 105, order_id: '1-3' } as const
    marketBook.apply(1, { ...row, leverage: 5 })
    marketBook.apply(2, { ...row, order_id: '1-2', leverage: 4 })
    marketBook.apply(3, { ...row, ...waits, leverage: 20 })
    marketBook.apply(4, { ...row, order_id: '1-4', leverage: 5, alive_until: 9 })
    const endsAt = (most: number, maxLeverage: number) =>
      marketBook.overdue(9_001 as Millis, most, maxLeverage).map(({ seq, reason }) => `${seq} ${reason}`)
    expect(endsAt(10, 4)).to.deep.equal(['1 LEVERAGE_CAP', '3 LEVERAGE_CAP', '4 EXPIRED'])
    expect(endsAt(2, 4)).to.deep.equal(['1 LEVERAGE_CAP', '4 EXPIRED'])
    expect(endsAt(10, 20)).to.deep.equal(['4 EXPIRED'])
    marketBook.apply(5, ended('1-3'))
    expect(endsAt(10, 5)).to.deep.equal(['4 EXPIRED'])
  })

  it('when the market has closed, all open and waiting orders end, up to the bound', () => {
    const marketBook = new MarketBook(spec, [])
    const row = placedRow(open('A buy 100 x10'))
    const waits = { type: 'STOP_LIMIT', status: 'PENDING_TRIGGER', trigger: 105, order_id: '1-2' } as const
    marketBook.apply(1, row)
    marketBook.apply(2, { ...row, ...waits })
    marketBook.apply(3, { ...row, order_id: '1-3', user_id: 2 })
    const ends = (most: number) => marketBook.closed(most).map(({ seq, reason }) => `${seq} ${reason}`)
    expect(ends(10)).to.deep.equal(['1 MARKET_CLOSED', '2 MARKET_CLOSED', '3 MARKET_CLOSED'])
    expect(ends(2)).to.deep.equal(['1 MARKET_CLOSED', '2 MARKET_CLOSED'])
    marketBook.apply(4, ended('1-1'))
    expect(ends(2)).to.deep.equal(['2 MARKET_CLOSED', '3 MARKET_CLOSED'])
  })

  it('when an order is conditional, it is not in the book until it is triggered', () => {
    const marketBook = new MarketBook(spec, [])
    marketBook.apply(1, {
      ...placedRow(open('A buy 100 x10')),
      type: 'STOP_LIMIT',
      status: 'PENDING_TRIGGER',
    })
    expect(marketBook.book.size).to.equal(0)
  })

  it('when the rows of any batch are applied, it equals a book that is loaded from the orders', () => {
    const seen = { fills: 0, ends: 0 }
    fc.assert(
      fc.property(anyBatch({ maxOrders: 16 }), (batch) => {
        const { before, after, plan } = planOf(batch)
        const fed = new MarketBook(batch.spec, [])
        const bySeq = [...before.values()].sort((a, b) => a.seq - b.seq)
        for (const one of bySeq) fed.apply(one.seq, placedRow(one))
        expect(fed.book.orders()).to.deep.equal(new MarketBook(batch.spec, bySeq).book.orders())
        for (const row of plan.rows) fed.apply(1_000, row)
        const loaded = new MarketBook(batch.spec, after.values())
        expect(fed.book.orders()).to.deep.equal(loaded.book.orders())
        for (const side of ['LONG', 'SHORT'] as const) {
          expect([...fed.book.levels(side)]).to.deep.equal([...loaded.book.levels(side)])
          expect(fed.book.marketOrders(side)).to.deep.equal(loaded.book.marketOrders(side))
        }
        seen.fills += plan.batch?.fills.length ?? 0
        seen.ends += plan.rows.filter(({ kind }) => kind === 'order_ended').length
      }),
      { numRuns: 300 },
    )
    expect(Math.min(...Object.values(seen)), JSON.stringify(seen)).to.be.greaterThan(50)
  })
})
