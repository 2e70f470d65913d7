import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { MatchedFill } from '../../../domain/journal/batch-rows.ts'
import type { OpenOrder } from '../../../domain/orders/open-order.ts'
import { reservationPerStep } from '../../../domain/orders/reservation.ts'
import { FLAT } from '../../../domain/positions/position.ts'
import { type Culprit, planVoid, type VoidInput } from '../../../domain/settlement/void-batch.ts'
import type { Address, Millis, Quote, Seconds, Seq, Steps, UserId } from '../../../domain/units.ts'
import { e18, perpetual, steps, ticks } from '../../support/markets.ts'

const ALICE = `0x${'a1'.repeat(20)}` as Address
const BOB = `0x${'b0'.repeat(20)}` as Address
const accountOf = (maker: Address): UserId => (maker === ALICE ? 1 : 2) as UserId
const LATE: Culprit = { kind: 'late', error: 'late' }

/**
 * A buy or sell of 10 at 1000, of which `settling` steps are matched and hold their share of the reservation.
 */
function order(seq: number, maker: Address, changes: Partial<OpenOrder> & { settling: Steps }): OpenOrder {
  const side = maker === ALICE ? 'LONG' : 'SHORT'
  const terms = {
    side,
    limit: changes.price ?? ticks(1000),
    leverage: 5,
    reservedPrice: ticks(1000),
  } as const
  const perStep = reservationPerStep(perpetual, terms)
  const isClosing = changes.closingReason !== undefined && changes.closingReason !== null
  const openable = (isClosing ? 0 : 10 - changes.settling - (changes.filled ?? 0)) as Steps
  return {
    ...{ orderId: `1-${seq}`, seq: seq as Seq, account: accountOf(maker), maker, salt: BigInt(seq), side },
    ...{ type: 'LIMIT', price: ticks(1000), quantity: steps(10), leverage: 5, reduceOnly: false },
    timeInForce: 'gtc',
    unused: steps(0),
    ...{ trigger: ticks(0), aliveUntil: 0 as Seconds, triggered: null },
    ...{ expiration: 0 as Seconds, acceptedAt: 0 as Millis, status: 'OPEN', statusReason: null },
    ...{
      filled: steps(0),
      closingReason: null,
      closedBy: null,
      reservedPrice: ticks(1000),
      partialSlot: 3,
      forced: false,
      endedAt: null,
    },
    openable,
    reserved: (perStep * BigInt(openable)) as Quote,
    held: (perStep * BigInt(changes.settling)) as Quote,
    ...changes,
  }
}

const fillOf = (of: OpenOrder, part = 1): MatchedFill => ({
  fill_id: `1-1-${part}-${of.seq}`,
  order_id: of.orderId,
  user_id: of.account,
  part,
  side: of.side,
  steps: of.settling,
  taker_steps: 0,
  held: of.held.toString(),
})

function take(orders: readonly OpenOrder[], changes: Partial<VoidInput> = {}) {
  const reservedOf = (account: UserId) =>
    orders.reduce(
      (sum, { account: owner, reserved, held }) => sum + (owner === account ? reserved + held : 0n),
      0n,
    )
  return planVoid({
    spec: perpetual,
    at: 1000 as Millis,
    culprit: LATE,
    batches: [{ batchId: 1, fromPart: 1, isReverted: false, fills: orders.map((one) => fillOf(one)) }],
    orders,
    positions: () => FLAT,
    fundsOf: (account) => ({ free: e18('1000') as Quote, reserved: reservedOf(account) as Quote }),
    ...changes,
  })
}

const byId = ({ orders }: ReturnType<typeof take>, seq: number) => orders.find((one) => one.seq === seq)

describe('planVoid', () => {
  it('when a batch is voided, its orders are open again with the held amounts back in their reservations', () => {
    const matched = [order(1, ALICE, { settling: steps(4) }), order(2, BOB, { settling: steps(4) })]
    const voided = take(matched)
    for (const { status, settling, held, openable, partialSlot } of voided.orders) {
      expect({ status, settling, held, openable, partialSlot }).to.deep.equal({
        ...{ status: 'OPEN', settling: 0, held: 0n, openable: 10, partialSlot: null },
      })
    }
    expect([...voided.reserved]).to.deep.equal([])
    expect(voided.rows[0]).to.include({ kind: 'batch_voided', batch_id: 1, from_part: 1, why: 'late' })
    expect(voided.rows[0]).to.deep.include({ reopened: ['1-1', '1-2'] })
  })

  it('when an order is partly filled on chain, it keeps its partial slot', () => {
    const voided = take([order(1, ALICE, { settling: steps(4), filled: steps(2) })])
    expect(byId(voided, 1)).to.include({ partialSlot: 3, filled: 2 })
  })

  it('when the error names an order, that order ends and its reservation is released', () => {
    const [bad, good] = [order(1, ALICE, { settling: steps(4) }), order(2, BOB, { settling: steps(4) })]
    const culprit: Culprit = { kind: 'order', maker: ALICE, salt: 1n, error: 'OrderDead' }
    const voided = take([bad, good], { culprit })
    expect(byId(voided, 1)).to.include({
      status: 'CANCELLED',
      statusReason: 'SETTLEMENT_REVERTED',
      endedAt: 1000,
    })
    expect([...voided.reserved]).to.deep.equal([[1, -(bad.reserved + bad.held)]])
    expect(voided.rows[0]).to.deep.include({ reopened: ['1-2'] })
    const ended = voided.rows.find(({ kind }) => kind === 'order_ended')
    expect(ended).to.include({ order_id: '1-1', reserved_delta: (-(bad.reserved + bad.held)).toString() })
  })

  it('when the error names an account, only its orders in the reverted part end', () => {
    const first = order(1, ALICE, { settling: steps(4) })
    const later = order(3, ALICE, { settling: steps(5) })
    const culprit: Culprit = { kind: 'account', maker: ALICE, error: 'MarginInsufficient' }
    const batches = [{ batchId: 1, fromPart: 1, isReverted: true, fills: [fillOf(first), fillOf(later, 2)] }]
    const voided = take([first, later], { culprit, batches })
    expect([byId(voided, 1)?.status, byId(voided, 3)?.status]).to.deep.equal(['CANCELLED', 'OPEN'])
  })

  for (const [name, changes, expected] of [
    [
      'cancelled by its owner',
      { status: 'CANCEL_PENDING_FINALIZE', closingReason: 'USER_CANCELLED' },
      ['CANCELLED', 'USER_CANCELLED'],
    ],
    ['expired', { status: 'CANCEL_PENDING_FINALIZE', closingReason: 'EXPIRED' }, ['EXPIRED', 'EXPIRED']],
    [
      'a young market order',
      { price: ticks(0), type: 'MARKET', closingReason: 'MARKET_REMAINDER' },
      ['OPEN', null],
    ],
    [
      'an old market order',
      { price: ticks(0), type: 'MARKET', closingReason: 'MARKET_REMAINDER', acceptedAt: -1000 as Millis },
      ['CANCELLED', 'SETTLEMENT_REVERTED'],
    ],
    [
      'a market order with a mined fill',
      { price: ticks(0), type: 'MARKET', closingReason: 'MARKET_REMAINDER', filled: steps(1) },
      ['CANCELLED', 'MARKET_REMAINDER'],
    ],
    [
      'an ioc order with a remainder',
      { timeInForce: 'ioc', closingReason: 'IOC_REMAINDER' },
      ['CANCELLED', 'IOC_REMAINDER'],
    ],
    ['an ioc order that was filled', { timeInForce: 'ioc' }, ['CANCELLED', 'IOC_REMAINDER']],
    ['replaced', { status: 'CANCEL_PENDING_FINALIZE', closingReason: 'REPLACED' }, ['CANCELLED', 'REPLACED']],
  ] as const) {
    it(`when an order is ${name}, its status and reason become ${expected.join(', ')}`, () => {
      const voided = take([order(1, ALICE, { settling: steps(4), ...changes })])
      const after = byId(voided, 1)
      expect([after?.status, after?.statusReason]).to.deep.equal(expected)
      expect([after?.settling, after?.held, after?.closingReason]).to.deep.equal([0, 0n, null])
    })
  }

  it('when the fill that closed its position is voided, a reduce-only order returns as it was', () => {
    const sold = order(1, ALICE, { settling: steps(4) })
    const fill = fillOf(sold)
    const left = { closingReason: 'POSITION_CLOSED', closedBy: fill.fill_id, reduceOnly: true } as const
    const none = { ...left, settling: steps(0), held: 0n as Quote, reserved: 0n as Quote, openable: steps(0) }
    const resting = { ...order(2, ALICE, { settling: steps(0) }), ...none }
    const waiting = {
      ...order(3, ALICE, { settling: steps(0) }),
      ...none,
      status: 'PENDING_TRIGGER' as const,
    }
    const others = { ...order(4, ALICE, { settling: steps(0) }), ...none, closedBy: '1-0-1-9' }
    const voided = take([sold, resting, waiting, others], {
      batches: [{ batchId: 1, fromPart: 1, isReverted: false, fills: [fill] }],
    })
    expect(byId(voided, 2)).to.include({ status: 'OPEN', closingReason: null, closedBy: null, seq: 2 })
    expect(byId(voided, 3)).to.include({ status: 'PENDING_TRIGGER', closingReason: null, closedBy: null })
    expect(byId(voided, 4)).to.equal(undefined)
    expect(voided.rows[0]).to.deep.include({ restored: ['1-2', '1-3'] })
  })

  it('when the account cannot pay for all orders on its mined position, the newest end', () => {
    // The sell closed a long that was never mined; on the flat mined position it opens.
    const matched = order(1, ALICE, { settling: steps(10) })
    const closing = {
      ...order(5, ALICE, { settling: steps(0) }),
      side: 'SHORT' as const,
      openable: steps(0),
      reserved: 0n as Quote,
    }
    const poor = { free: (matched.held + 1n) as Quote, reserved: matched.held }
    const batches = [{ batchId: 1, fromPart: 1, isReverted: true, fills: [fillOf(matched)] }]
    const voided = take([matched, closing], { batches, fundsOf: () => poor })
    expect(byId(voided, 5)).to.include({ status: 'CANCELLED', statusReason: 'INSUFFICIENT_MARGIN' })
    expect(byId(voided, 1)).to.include({ status: 'OPEN', reserved: matched.held })
  })
})
