import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import {
  isInBook,
  isLeaving,
  isTerminal,
  type OrderLife,
  type TransitionInput,
  transition,
  unmatched,
} from '../../../domain/orders/order-state.ts'
import {
  cancel,
  expire,
  leave,
  match,
  open,
  remainder,
  settle,
  trigger,
  voidMatch,
  waiting,
  walk,
} from '../support/transitions.ts'

describe('transition', () => {
  const paths: readonly (readonly [
    string,
    OrderLife,
    readonly TransitionInput[],
    string,
    string | null,
    readonly string[],
  ])[] = [
    ['a trigger', waiting, [trigger], 'OPEN', null, []],
    ['a cancel before the trigger', waiting, [cancel], 'CANCELLED', 'USER_CANCELLED', ['CANCELLED']],
    ['an expiry before the trigger', waiting, [expire], 'EXPIRED', 'EXPIRED', ['EXPIRED']],
    ['a match', open, [match(10)], 'OPEN', null, []],
    ['a full fill', open, [match(10), settle(10)], 'FILLED', 'FILLED', ['FILLED']],
    [
      'a fill in two parts',
      open,
      [match(10), settle(4), settle(6)],
      'FILLED',
      'FILLED',
      ['PARTIALLY_FILLED', 'FILLED'],
    ],
    ['a partial fill', open, [match(4), settle(4)], 'OPEN', null, ['PARTIALLY_FILLED']],
    ['a cancel', open, [cancel], 'CANCELLED', 'USER_CANCELLED', ['CANCELLED']],
    ['an expiry', open, [expire], 'EXPIRED', 'EXPIRED', ['EXPIRED']],
    ['a cancel while settling', open, [match(4), cancel], 'CANCEL_PENDING_FINALIZE', null, []],
    ['an expiry while settling', open, [match(4), expire], 'CANCEL_PENDING_FINALIZE', null, []],
    [
      'and then a receipt',
      open,
      [match(4), cancel, settle(4)],
      'CANCELLED',
      'USER_CANCELLED',
      ['PARTIALLY_FILLED', 'CANCELLED'],
    ],
    [
      'and then a receipt after an expiry',
      open,
      [match(4), expire, settle(4)],
      'EXPIRED',
      'EXPIRED',
      ['PARTIALLY_FILLED', 'EXPIRED'],
    ],
    [
      'and then a receipt for all of it',
      open,
      [match(10), cancel, settle(10)],
      'FILLED',
      'FILLED',
      ['FILLED'],
    ],
    [
      'a cancel while settling and then a void',
      open,
      [match(4), cancel, voidMatch(4)],
      'CANCELLED',
      'USER_CANCELLED',
      ['CANCELLED'],
    ],
    [
      'a receipt for a part, the rest voided',
      open,
      [match(8), cancel, settle(3), voidMatch(5)],
      'CANCELLED',
      'USER_CANCELLED',
      ['PARTIALLY_FILLED', 'CANCELLED'],
    ],
    ['a market remainder', open, [match(4), remainder], 'OPEN', null, []],
    [
      'and then its receipt',
      open,
      [match(4), remainder, settle(4)],
      'CANCELLED',
      'MARKET_REMAINDER',
      ['PARTIALLY_FILLED', 'CANCELLED'],
    ],
    ['a market order that met no order', open, [remainder], 'CANCELLED', 'MARKET_REMAINDER', ['CANCELLED']],
    ['a voided market order that re-enters', open, [match(4), remainder, voidMatch(4)], 'OPEN', null, []],
    [
      'one that is too old to',
      open,
      [match(4), remainder, voidMatch(4, 'NO_BATCH_IN_TIME')],
      'CANCELLED',
      'NO_BATCH_IN_TIME',
      ['CANCELLED'],
    ],
    ['a voided limit order', open, [match(4), voidMatch(4)], 'OPEN', null, []],
    [
      'the culprit of a revert',
      open,
      [match(4), voidMatch(4, 'SETTLEMENT_REVERTED')],
      'CANCELLED',
      'SETTLEMENT_REVERTED',
      ['CANCELLED'],
    ],
    [
      'the culprit with more settling',
      open,
      [match(6), voidMatch(4, 'SETTLEMENT_REVERTED')],
      'OPEN',
      null,
      [],
    ],
  ]
  for (const [name, from, input, status, reason, events] of paths) {
    it(`when the path is ${name}, the status is ${status}`, () => {
      const walked = walk(from, input)
      expect(walked.life).to.include({ status, statusReason: reason })
      expect(walked.events).to.deep.equal(events)
    })
  }

  const refusals: readonly (readonly [
    string,
    OrderLife,
    readonly TransitionInput[],
    TransitionInput,
    object,
  ])[] = [
    ['a second cancel', open, [cancel], cancel, { code: 'ALREADY_ENDED', status: 'CANCELLED' }],
    [
      'a cancel of a filled order',
      open,
      [match(10), settle(10)],
      cancel,
      { code: 'ALREADY_ENDED', status: 'FILLED' },
    ],
    [
      'a second cancel while settling',
      open,
      [match(4), cancel],
      cancel,
      { code: 'ALREADY_CLOSING', reason: 'USER_CANCELLED' },
    ],
    [
      'an expiry after a cancel',
      open,
      [match(4), cancel],
      expire,
      { code: 'ALREADY_CLOSING', reason: 'USER_CANCELLED' },
    ],
    ['a match of a waiting order', waiting, [], match(1), { code: 'NOT_IN_BOOK' }],
    ['a match while a cancel waits', open, [match(4), cancel], match(1), { code: 'NOT_IN_BOOK' }],
    ['a match of all that is matched', open, [match(10)], match(1), { code: 'NOT_IN_BOOK' }],
    ['a match of more than remains', open, [match(4)], match(7), { code: 'TOO_MUCH', most: 6 }],
    ['a receipt for more than settles', open, [match(4)], settle(5), { code: 'TOO_MUCH', most: 4 }],
    ['a void of more than settles', open, [match(4)], voidMatch(5), { code: 'TOO_MUCH', most: 4 }],
    ['a second trigger', waiting, [trigger], trigger, { code: 'NOT_WAITING' }],
    ['a receipt after the end', open, [cancel], settle(1), { code: 'ALREADY_ENDED', status: 'CANCELLED' }],
  ]
  for (const [name, from, before, input, refusal] of refusals) {
    it(`when the transition is ${name}, it is refused`, () => {
      expect(transition(walk(from, before).life, input)).to.deep.equal({ ok: false, refusal })
    })
  }

  const anyCount = fc.integer({ min: 1, max: 10 })
  const anyStep = fc.oneof(
    fc.constantFrom(trigger, cancel, expire, remainder, leave),
    anyCount.map(match),
    anyCount.map(settle),
    anyCount.map((count) => voidMatch(count)),
    anyCount.map((count) => voidMatch(count, 'SETTLEMENT_REVERTED')),
  )

  it('when any transitions are applied, quantities add up, terminal statuses have reasons and one event, and nothing follows them', () => {
    fc.assert(
      fc.property(fc.constantFrom(open, waiting), fc.array(anyStep, { maxLength: 40 }), (from, input) => {
        let life = from
        let ends = 0
        for (const each of input) {
          const verdict = transition(life, each)
          if (!verdict.ok) continue
          expect(isTerminal(life.status)).to.equal(false)
          life = verdict.value.life
          ends += verdict.value.events.filter((event) =>
            ['FILLED', 'CANCELLED', 'EXPIRED'].includes(event),
          ).length
          expect(life.filled >= 0 && life.settling >= 0 && unmatched(life) >= 0).to.equal(true)
          expect(life.statusReason !== null).to.equal(isTerminal(life.status))
          expect(ends).to.equal(isTerminal(life.status) ? 1 : 0)
          if (isTerminal(life.status)) expect([life.settling, life.closingReason]).to.deep.equal([0, null])
          if (life.closedBy !== null)
            expect(life.statusReason ?? life.closingReason).to.equal('POSITION_CLOSED')
          if (isLeaving(life)) expect(isInBook(life)).to.equal(false)
          if (life.status === 'FILLED') expect(life.filled).to.equal(life.quantity)
          if (life.status === 'CANCEL_PENDING_FINALIZE') expect(isInBook(life)).to.equal(false)
        }
      }),
    )
  })
})
