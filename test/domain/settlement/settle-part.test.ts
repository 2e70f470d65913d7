/** Tests the effect of a mined part on orders and accounts, and that a rollback undoes exactly that. */
import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import type { ClosingReason } from '../../../domain/orders/order-state.ts'
import { FLAT, type Position } from '../../../domain/positions/position.ts'
import {
  type Movement,
  movementOf,
  type PartState,
  rollBackPart,
  settlePart,
  type UnsettledFill,
} from '../../../domain/settlement/settle-part.ts'
import type { BatchSettled, SettledFill } from '../../../domain/settlement/settlement.ts'
import type { MovedSize, SettlingOrder } from '../../../domain/settlement/settling-order.ts'
import type { Address, Quote, Steps } from '../../../domain/units.ts'
import { perpetual } from '../../support/markets.ts'

const ALICE = '0xa' as Address
const BOB = '0xb' as Address
const MINED = { block: 3, tx_hash: '0xt', log_index: 2, at: 1_000 }

const order = (maker: Address, change: Partial<SettlingOrder> = {}): SettlingOrder => ({
  ...{
    orderId: `1-${maker}`,
    userId: maker === ALICE ? 1 : 2,
    maker,
    salt: 5n,
    isForced: false,
    status: 'OPEN',
    statusReason: null,
  },
  ...{ quantity: 10 as Steps, filled: 0 as Steps, settling: 10 as Steps, closingReason: null },
  ...{ side: maker === ALICE ? 'LONG' : 'SHORT', reduceOnly: false, closedBy: null },
  ...{ reserved: 0n, held: 100n, waits: false, ...change },
})

const waiting = (of: SettlingOrder, steps = of.settling as number): UnsettledFill => ({
  ...{
    fillId: `1-4-1-${of.maker}`,
    orderId: of.orderId,
    maker: of.maker,
    salt: of.salt,
    isForced: of.isForced,
  },
  ...{ side: of.maker === ALICE ? 'LONG' : 'SHORT', steps, takerSteps: 0, held: of.held },
})

const fill = (maker: Address, steps: number, freeDelta = -40n): SettledFill => ({
  ...{ maker, salt: 5n, isForced: false, side: maker === ALICE ? 'LONG' : 'SHORT' },
  ...{ reduceOnly: false, leverage: 5 },
  ...{ fill: steps as Steps, taker: 0 as Steps, partialSlot: null, isDead: true, isFeeCapped: false },
  ...{ fee: 0n as Quote, freeDelta: freeDelta as Quote },
})

const part = (fills: readonly SettledFill[]): BatchSettled =>
  ({
    ...{ actionId: 1, batchId: 4, part: 1, parts: 1, asOf: 900, price: 100, fundingIndex: 0n, fills },
  }) as unknown as BatchSettled

const position = (size: number): Position => ({ ...FLAT, size: size as Steps, leverage: 5 })
const movement = (size: number): Movement => ({
  positions: new Map([
    [ALICE, position(size)],
    [BOB, position(-size)],
  ]),
  realised: [0n, 0n],
})

const state = (
  orders: readonly SettlingOrder[],
  fills: readonly UnsettledFill[],
  ledger = {},
): PartState => ({
  users: new Map([
    [ALICE, 1],
    [BOB, 2],
  ]),
  ledger: new Map([
    [1, { free: 1_000n, pending: 0n, ...ledger }],
    [2, { free: 1_000n, pending: 0n }],
  ]),
  positions: new Map(),
  orders,
  fills,
  leaving: [],
  reduceOnly: [],
  moved: new Map<number, MovedSize>(),
})

const settle = (partState: PartState, fills: readonly SettledFill[]) =>
  settlePart(1, part(fills), movement(10), partState, MINED)

describe('settlePart', () => {
  it('when orders fill completely, it marks them FILLED and releases their held amounts', () => {
    const orders = [order(ALICE), order(BOB)]
    const { row, orders: after } = settle(
      state(
        orders,
        orders.map((of) => waiting(of)),
      ),
      [fill(ALICE, 10), fill(BOB, 10)],
    )
    expect(after.map(({ status, filled, settling, held }) => [status, filled, settling, held])).to.deep.equal(
      [
        ['FILLED', 10, 0, 0n],
        ['FILLED', 10, 0, 0n],
      ],
    )
    expect(row.fills.map(({ matched, held }) => [matched, held])).to.deep.equal([
      [true, '100'],
      [true, '100'],
    ])
    expect(row.positions.map(({ user_id, size_delta }) => [user_id, size_delta])).to.deep.equal([
      [1, 10],
      [2, -10],
    ])
  })

  it('when an order ends with the fill, it releases the rest of its reservation too', () => {
    const closing = order(ALICE, { quantity: 30 as Steps, closingReason: 'MARKET_REMAINDER', reserved: 7n })
    const { row } = settle(state([closing], [waiting(closing)]), [fill(ALICE, 10), fill(BOB, 10)])
    expect(row.orders).to.deep.equal([
      {
        order_id: '1-0xa',
        user_id: 1,
        status: 'CANCELLED',
        reason: 'MARKET_REMAINDER',
        reserved_delta: '-7',
      },
    ])
  })

  it("when a forced order has the number of a trader's salt, the fill of each settles its own order", () => {
    const forced = order(ALICE, { orderId: '1-5', isForced: true, held: 0n, quantity: 20 as Steps })
    const own = order(ALICE)
    const fills = [{ ...fill(ALICE, 10), isForced: true }, fill(ALICE, 10)]
    const { row, orders } = settle(state([own, forced], [waiting(own), waiting(forced)]), fills)
    expect(row.fills.map(({ order_id, forced: isForced }) => [order_id, isForced])).to.deep.equal([
      ['1-5', true],
      ['1-0xa', undefined],
    ])
    expect(orders.map(({ orderId, status, filled }) => [orderId, status, filled])).to.deep.equal([
      ['1-5', 'OPEN', 10],
      ['1-0xa', 'FILLED', 10],
    ])
  })

  it('when no batch had matched a forced fill here, no stored order with its number changes', () => {
    const stored = order(ALICE, { orderId: '1-5', isForced: true, settling: 0 as Steps })
    const { row, orders } = settle(state([stored], []), [{ ...fill(ALICE, 10), isForced: true }])
    expect(row.fills.map(({ order_id }) => order_id)).to.deep.equal(['1-liquidation-0xa-5'])
    expect(orders).to.deep.equal([])
  })

  it('when the orders of the fills are unknown, it identifies them by maker and salt and holds nothing', () => {
    const { row, orders } = settle(state([], []), [fill(ALICE, 10), fill(BOB, 10)])
    expect(orders).to.deep.equal([])
    expect(row.fills[0]).to.deep.include({
      matched: false,
      order_id: '1-0xa-5',
      fill_id: '1-4-1-c0',
      held: '0',
    })
  })

  it('when only the chain has a fill of an open order, the order takes the fill if it fits', () => {
    const fits = order(ALICE, { settling: 0 as Steps, held: 0n, quantity: 12 as Steps })
    const full = order(BOB, { settling: 9 as Steps, quantity: 10 as Steps })
    const { row, orders } = settle(state([fits, full], []), [fill(ALICE, 10), fill(BOB, 10)])
    expect(orders.map(({ orderId, filled, status }) => [orderId, filled, status])).to.deep.equal([
      ['1-0xa', 10, 'OPEN'],
    ])
    expect(row.fills.map(({ order_id }) => order_id)).to.deep.equal(['1-0xa', '1-0xb-5'])
  })

  it('when a debit exceeds the free balance, it charges the rest to a pending withdrawal', () => {
    const partState = state([], [], { free: 30n, pending: 100n })
    const { row } = settle(partState, [fill(ALICE, 4, -20n), fill(ALICE, 6, -50n), fill(BOB, 10)])
    expect(row.fills.map(({ from_pending }) => from_pending)).to.deep.equal(['0', '40', '0'])
  })

  it('when any part is rolled back, every order returns to its state before', () => {
    const anyOrder = fc.record({
      quantity: fc.integer({ min: 10, max: 40 }),
      filled: fc.integer({ min: 0, max: 20 }),
      more: fc.integer({ min: 0, max: 5 }),
      reserved: fc.bigInt({ min: 0n, max: 50n }),
      closing: fc.constantFrom<ClosingReason | null>(null, 'USER_CANCELLED', 'EXPIRED', 'MARKET_REMAINDER'),
    })
    fc.assert(
      fc.property(anyOrder, ({ quantity, filled, more, reserved, closing }) => {
        const status = closing === null || closing === 'MARKET_REMAINDER' ? 'OPEN' : 'CANCEL_PENDING_FINALIZE'
        const before = order(ALICE, {
          ...{
            filled: filled as Steps,
            settling: (10 + more) as Steps,
            quantity: Math.max(quantity, filled + 10 + more) as Steps,
          },
          ...{ reserved, closingReason: closing, status },
        })
        // An order whose last fill is mined has ended as FILLED; an earlier closing reason is no longer
        // known.
        fc.pre(closing === null || before.quantity > before.filled + 10 || before.settling > 10)
        const { row, orders } = settle(state([before], [waiting(before, 10)]), [fill(ALICE, 10)])
        const back = rollBackPart(row, orders)
        expect(back.orders).to.deep.equal([before])
        expect(back.row).to.deep.include({ rollback: true, fills: row.fills, positions: row.positions })
      }),
    )
  })

  describe('when a fill closes the position of reduce-only orders', () => {
    const sold = order(ALICE)
    const stored = waiting(sold)
    const left = order(ALICE, {
      ...{ orderId: '1-left', salt: 6n, settling: 0 as Steps, held: 0n, reduceOnly: true },
      ...{ closingReason: 'POSITION_CLOSED', closedBy: stored.fillId },
    })
    const before = { ...state([sold, order(BOB)], [stored, waiting(order(BOB))]), leaving: [left] }
    const fills = [fill(ALICE, 10), fill(BOB, 10)]

    it('it ends the orders that left the book with that fill, and a rollback returns these orders to that state', () => {
      const { row, orders } = settle(before, fills)
      const ended = orders.find(({ orderId }) => orderId === '1-left') as SettlingOrder
      expect(ended).to.include({ status: 'CANCELLED', statusReason: 'POSITION_CLOSED' })
      expect(row.position_closed).to.deep.equal(['1-left'])
      const back = rollBackPart(row, orders)
      expect(back.orders.find(({ orderId }) => orderId === '1-left')).to.deep.equal(left)
      expect(back.row.orders.at(-1)).to.include({ status: 'OPEN', reason: 'POSITION_CLOSED' })
    })

    const rests = order(ALICE, {
      ...left,
      orderId: '1-rests',
      closingReason: null,
      closedBy: null,
      side: 'SHORT',
    })
    const closes = { before: 5, after: 0 }
    const stays = { before: 5, after: 3 }
    for (const [name, size, expected] of [
      [
        'both sizes close',
        { mined: closes, matched: closes, unsettled: null },
        ['CANCELLED', 'POSITION_CLOSED'],
      ],
      [
        'only the matched size closes',
        { mined: stays, matched: closes, unsettled: '1-5-1-9' },
        ['OPEN', 'POSITION_CLOSED'],
      ],
      ['only the mined size closes', { mined: closes, matched: stays, unsettled: '1-5-1-9' }, null],
      ['no size closes', { mined: stays, matched: stays, unsettled: null }, null],
    ] as const) {
      it(`if no batch had matched the fill and ${name}, an order in the book becomes ${expected ?? 'nothing else'}`, () => {
        const moved = new Map([[1, size]])
        const { row, orders } = settle({ ...state([], []), reduceOnly: [rests], moved }, fills)
        const after = orders.find(({ orderId }) => orderId === '1-rests')
        expect(after ? [after.status, after.statusReason ?? after.closingReason] : null).to.deep.equal(
          expected,
        )
        const back = rollBackPart(row, orders).orders.find(({ orderId }) => orderId === '1-rests')
        expect(back).to.deep.equal(after && rests)
      })
    }
  })

  it('when an order is cancelled between mining and rollback, it waits with the reason of the cancel', () => {
    const before = order(ALICE, { quantity: 30 as Steps })
    const { row } = settle(state([before], [waiting(before)]), [fill(ALICE, 10)])
    const cancelled = order(ALICE, {
      ...{ quantity: 30 as Steps, filled: 10 as Steps, settling: 0 as Steps, held: 0n },
      ...{ status: 'CANCELLED', statusReason: 'USER_CANCELLED' },
    })
    const { orders, row: back } = rollBackPart(row, [cancelled])
    expect(orders[0]).to.deep.include({
      ...{ status: 'CANCEL_PENDING_FINALIZE', statusReason: null, closingReason: 'USER_CANCELLED' },
      ...{ filled: 0, settling: 10, held: 100n },
    })
    expect(back.orders[0]).to.deep.include({ status: 'CANCEL_PENDING_FINALIZE', reason: 'USER_CANCELLED' })
  })
})

describe('movementOf', () => {
  it('when the rules would never settle the fills, it returns null', () => {
    const wrong = {
      ...part([fill(ALICE, 10, 999n)]),
      makerFee: 0n,
      takerFee: 0n,
      fundingIndex: 0n,
    } as BatchSettled
    expect(movementOf(perpetual, wrong, new Map())).to.equal(null)
  })
})
