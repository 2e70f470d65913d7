import { expect } from 'chai'
import { describe, it } from 'mocha'
import {
  type BracketEvents,
  type BracketMember,
  bracketEnds,
  bracketRole,
} from '../../../domain/orders/brackets.ts'
import { ORDER_TYPES } from '../../../domain/orders/order.ts'
import type { Steps } from '../../../domain/units.ts'

const NOTHING: BracketEvents = { hasFilledExit: false, hasLostEntry: false }
const order = (fields: Partial<BracketMember>): BracketMember => ({
  accepted: 1,
  seq: 1,
  side: 'LONG',
  type: 'LIMIT',
  reduceOnly: false,
  unused: 0,
  status: 'OPEN',
  statusReason: null,
  quantity: 3 as Steps,
  filled: 0 as Steps,
  settling: 0 as Steps,
  closingReason: null,
  closedBy: null,
  ...fields,
})
const entry = order({})
const exit = { side: 'SHORT', reduceOnly: true, status: 'PENDING_TRIGGER' } as const
const profit = order({ ...exit, accepted: 2, seq: 2, type: 'TAKE_PROFIT_LIMIT' })
const loss = order({ ...exit, accepted: 3, seq: 3, type: 'STOP_LOSS_MARKET' })
const ends = (live: readonly BracketMember[], events: Partial<BracketEvents> = {}) =>
  bracketEnds(live, { ...NOTHING, ...events }).map(({ order: { accepted }, reason }) => [accepted, reason])

describe('domain/orders/brackets', () => {
  it('when an order has a type, its role is entry, take profit or stop loss; other reduce-only orders have none', () => {
    for (const type of ORDER_TYPES) {
      const always = type.startsWith('TAKE')
        ? 'take_profit'
        : type.startsWith('STOP_LOSS')
          ? 'stop_loss'
          : null
      expect(bracketRole({ type, reduceOnly: true })).to.equal(always)
      if (always === null) expect(bracketRole({ type, reduceOnly: false })).to.equal('entry')
    }
  })

  it('when nothing has triggered, filled or ended, no order ends', () => {
    expect(ends([entry, profit, loss])).to.deep.equal([])
  })

  it('when the entry is lost, both exits end, unless another entry has come in its place', () => {
    const [first, second] = [
      [2, 'ENTRY_ENDED'],
      [3, 'ENTRY_ENDED'],
    ]
    expect(ends([profit, loss], { hasLostEntry: true })).to.deep.equal([first, second])
    expect(ends([entry, profit, loss], { hasLostEntry: true })).to.deep.equal([])
    const settling = order({
      closingReason: 'REPLACED',
      status: 'CANCEL_PENDING_FINALIZE',
      settling: 1 as Steps,
    })
    expect(ends([settling, profit, loss], { hasLostEntry: true })).to.deep.equal([first, second])
  })

  it('when an exit is filled, the other one ends', () => {
    expect(ends([loss], { hasFilledExit: true })).to.deep.equal([[3, 'EXIT_FILLED']])
  })

  it('when an exit triggers, the rest of the entry ends, and an exit in the book before it', () => {
    const first = { ...profit, status: 'OPEN', seq: 10 } as const
    const second = { ...loss, status: 'OPEN', seq: 11 } as const
    expect(ends([entry, first, loss])).to.deep.equal([[1, 'EXIT_TRIGGERED']])
    expect(ends([entry, first, second])).to.deep.equal([
      [2, 'EXIT_TRIGGERED'],
      [1, 'EXIT_TRIGGERED'],
    ])
  })

  it('when all of an exit is matched, the other one ends at its trigger, and no matched order does', () => {
    const matched = { ...profit, status: 'OPEN', seq: 10, settling: 3 as Steps } as const
    const filledEntry = order({ settling: 3 as Steps })
    expect(ends([filledEntry, matched, loss])).to.deep.equal([])
    expect(ends([filledEntry, matched, { ...loss, status: 'OPEN', seq: 11 }])).to.deep.equal([
      [3, 'EXIT_TRIGGERED'],
    ])
  })
})
