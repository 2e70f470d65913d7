import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import {
  accepted,
  isInBook,
  isTerminal,
  type OrderEventKind,
  type OrderLife,
  type OrderStep,
  step,
  unmatched,
} from '../../domain/order-state.ts'
import { steps } from '../support/markets.ts'

const open = accepted({ type: 'LIMIT', quantity: steps(10) })
const waiting = accepted({ type: 'STOP_LIMIT', quantity: steps(10) })

/** Takes the steps one after the other; the last life, and all events on the way. */
function walk(
  from: OrderLife,
  taken: readonly OrderStep[],
): { life: OrderLife; events: readonly OrderEventKind[] } {
  let life = from
  const events: OrderEventKind[] = []
  for (const each of taken) {
    const verdict = step(life, each)
    if (!verdict.ok) throw new Error(`${each.kind}: ${verdict.refusal.code}`)
    life = verdict.value.life
    events.push(...verdict.value.events)
  }
  return { life, events }
}

const match = (count: number): OrderStep => ({ kind: 'match', steps: steps(count) })
const settle = (count: number): OrderStep => ({ kind: 'settle', steps: steps(count) })
const unmine = (count: number, settling = count): OrderStep => ({
  kind: 'unmine',
  steps: steps(count),
  settling: steps(settling),
})
const unwind = (
  count: number,
  ending: 'SETTLEMENT_REVERTED' | 'NO_BATCH_IN_TIME' | null = null,
): OrderStep => ({
  kind: 'unwind',
  steps: steps(count),
  ending,
})
const cancel: OrderStep = { kind: 'close', reason: 'USER_CANCELLED' }
const expire: OrderStep = { kind: 'close', reason: 'EXPIRED' }
const remainder: OrderStep = { kind: 'close', reason: 'MARKET_REMAINDER' }
const trigger: OrderStep = { kind: 'trigger' }

describe('step', () => {
  const paths: readonly (readonly [
    string,
    OrderLife,
    readonly OrderStep[],
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
    ['and then an unwind', open, [match(4), cancel, unwind(4)], 'CANCELLED', 'USER_CANCELLED', ['CANCELLED']],
    [
      'a receipt for a part, the rest unwound',
      open,
      [match(8), cancel, settle(3), unwind(5)],
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
    ['a market order that met nobody', open, [remainder], 'CANCELLED', 'MARKET_REMAINDER', ['CANCELLED']],
    ['an unwound market order that re-enters', open, [match(4), remainder, unwind(4)], 'OPEN', null, []],
    [
      'one that is too old to',
      open,
      [match(4), remainder, unwind(4, 'NO_BATCH_IN_TIME')],
      'CANCELLED',
      'NO_BATCH_IN_TIME',
      ['CANCELLED'],
    ],
    ['an unwound limit order', open, [match(4), unwind(4)], 'OPEN', null, []],
    [
      'the culprit of a revert',
      open,
      [match(4), unwind(4, 'SETTLEMENT_REVERTED')],
      'CANCELLED',
      'SETTLEMENT_REVERTED',
      ['CANCELLED'],
    ],
    ['the culprit with more settling', open, [match(6), unwind(4, 'SETTLEMENT_REVERTED')], 'OPEN', null, []],
  ]
  for (const [name, from, taken, status, reason, events] of paths) {
    it(`given ${name}, it is ${status}`, () => {
      const walked = walk(from, taken)
      expect(walked.life).to.include({ status, statusReason: reason })
      expect(walked.events).to.deep.equal(events)
    })
  }

  const refusals: readonly (readonly [string, OrderLife, readonly OrderStep[], OrderStep, object])[] = [
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
    ['a match of too much', open, [match(4)], match(7), { code: 'TOO_MUCH', most: 6 }],
    ['a receipt for too much', open, [match(4)], settle(5), { code: 'TOO_MUCH', most: 4 }],
    ['an unwind of too much', open, [match(4)], unwind(5), { code: 'TOO_MUCH', most: 4 }],
    ['a second trigger', waiting, [trigger], trigger, { code: 'NOT_WAITING' }],
    ['a receipt after the end', open, [cancel], settle(1), { code: 'ALREADY_ENDED', status: 'CANCELLED' }],
  ]
  for (const [name, from, before, taken, refusal] of refusals) {
    it(`given ${name}, it refuses`, () => {
      expect(step(walk(from, before).life, taken)).to.deep.equal({ ok: false, refusal })
    })
  }

  // ---------------------------------------------------------------------- the whole table

  const closedWithPosition: OrderStep = { kind: 'close', reason: 'POSITION_CLOSED' }
  const keyExpires: OrderStep = { kind: 'close', reason: 'SIGNER_EXPIRED' }
  const restore: OrderStep = { kind: 'restore', waits: false }
  const STEPS: Readonly<Record<string, OrderStep>> = {
    trigger,
    match: match(3),
    'settle 3': settle(3),
    'settle all': settle(10),
    unwind: unwind(3),
    'unwind, ending': unwind(3, 'SETTLEMENT_REVERTED'),
    cancel,
    expire,
    'key expires': keyExpires,
    remainder,
    'position closed': closedWithPosition,
    unmine: unmine(3),
    'unmine, foreign': unmine(3, 0),
    restore,
  }
  const whole = [match(10), settle(10)]
  const part = [match(3), settle(3)]
  const STATES: Readonly<Record<string, OrderLife>> = {
    waiting,
    open,
    settling: walk(open, [match(3)]).life,
    'settling all': walk(open, [match(10)]).life,
    'part filled': walk(open, part).life,
    'remainder settling': walk(open, [match(3), remainder]).life,
    'cancel pending': walk(open, [match(3), cancel]).life,
    'expiry pending': walk(open, [match(3), expire]).life,
    'position closed, settling': walk(open, [match(3), closedWithPosition]).life,
    filled: walk(open, whole).life,
    'cancelled, part filled': walk(open, [...part, cancel]).life,
    'remainder cancelled': walk(open, [match(3), remainder, settle(3)]).life,
    'expired, part filled': walk(open, [...part, expire]).life,
    'position closed': walk(waiting, [closedWithPosition]).life,
  }

  const O = 'OPEN'
  const C = 'CANCELLED'
  const X = 'EXPIRED'
  const F = 'FILLED'
  const W = 'CANCEL_PENDING_FINALIZE'
  const ended = Array(11).fill('ALREADY_ENDED')
  /** What each state becomes, or the refusal, by the steps above in their order. */
  const OUTCOMES: Readonly<Record<string, readonly string[]>> = {
    waiting: [
      O,
      'NOT_IN_BOOK',
      ...Array(4).fill('TOO_MUCH'),
      C,
      X,
      X,
      C,
      C,
      'TOO_MUCH',
      'TOO_MUCH',
      'NOT_CLOSED_WITH_POSITION',
    ],
    open: [
      'NOT_WAITING',
      O,
      ...Array(4).fill('TOO_MUCH'),
      C,
      X,
      X,
      C,
      C,
      'TOO_MUCH',
      'TOO_MUCH',
      'NOT_CLOSED_WITH_POSITION',
    ],
    settling: [
      'NOT_WAITING',
      O,
      O,
      'TOO_MUCH',
      O,
      C,
      W,
      W,
      W,
      O,
      W,
      'TOO_MUCH',
      'TOO_MUCH',
      'NOT_CLOSED_WITH_POSITION',
    ],
    'settling all': [
      'NOT_WAITING',
      'NOT_IN_BOOK',
      O,
      F,
      O,
      O,
      W,
      W,
      W,
      O,
      W,
      'TOO_MUCH',
      'TOO_MUCH',
      'NOT_CLOSED_WITH_POSITION',
    ],
    'part filled': [
      'NOT_WAITING',
      O,
      ...Array(4).fill('TOO_MUCH'),
      C,
      X,
      X,
      C,
      C,
      O,
      O,
      'NOT_CLOSED_WITH_POSITION',
    ],
    'remainder settling': [
      'NOT_WAITING',
      'NOT_IN_BOOK',
      C,
      'TOO_MUCH',
      O,
      C,
      ...Array(5).fill('ALREADY_CLOSING'),
      'TOO_MUCH',
      'TOO_MUCH',
      'NOT_CLOSED_WITH_POSITION',
    ],
    'cancel pending': [
      'NOT_WAITING',
      'NOT_IN_BOOK',
      C,
      'TOO_MUCH',
      C,
      C,
      ...Array(5).fill('ALREADY_CLOSING'),
      'TOO_MUCH',
      'TOO_MUCH',
      'NOT_CLOSED_WITH_POSITION',
    ],
    'expiry pending': [
      'NOT_WAITING',
      'NOT_IN_BOOK',
      X,
      'TOO_MUCH',
      X,
      X,
      ...Array(5).fill('ALREADY_CLOSING'),
      'TOO_MUCH',
      'TOO_MUCH',
      'NOT_CLOSED_WITH_POSITION',
    ],
    'position closed, settling': [
      'NOT_WAITING',
      'NOT_IN_BOOK',
      C,
      'TOO_MUCH',
      C,
      C,
      ...Array(5).fill('ALREADY_CLOSING'),
      'TOO_MUCH',
      'TOO_MUCH',
      O,
    ],
    filled: [...ended, O, O, 'NOT_CLOSED_WITH_POSITION'],
    'cancelled, part filled': [...ended, W, C, 'NOT_CLOSED_WITH_POSITION'],
    'remainder cancelled': [...ended, O, C, 'NOT_CLOSED_WITH_POSITION'],
    'expired, part filled': [...ended, W, X, 'NOT_CLOSED_WITH_POSITION'],
    'position closed': [...ended, 'TOO_MUCH', 'TOO_MUCH', O],
  }
  for (const [name, life] of Object.entries(STATES)) {
    it(`given an order that is ${name}, every step leads where the table says`, () => {
      const names = Object.keys(STEPS)
      expect(OUTCOMES[name]).to.have.length(names.length)
      for (const [at, taken] of Object.values(STEPS).entries()) {
        const before = { ...life }
        const verdict = step(life, taken)
        const outcome = verdict.ok ? verdict.value.life.status : verdict.refusal.code
        expect(outcome, `${name}, ${names[at]}`).to.equal(OUTCOMES[name]?.[at])
        expect(life, 'a step changes no order in place').to.deep.equal(before)
      }
    })
  }

  it('given a position that is there again, what protects it waits again if it had not been triggered', () => {
    const back = step(STATES['position closed'] as OrderLife, { kind: 'restore', waits: true })
    expect(back).to.deep.equal({ ok: true, value: { life: waiting, events: [] } })
  })

  it('over any walk to an end and back, unmining undoes the receipt', () => {
    for (const before of [
      'settling',
      'settling all',
      'remainder settling',
      'cancel pending',
      'expiry pending',
    ]) {
      const life = STATES[before] as OrderLife
      const mined = walk(life, [settle(life.settling)]).life
      expect(walk(mined, [unmine(life.settling)]).life, before).to.deep.equal(life)
    }
  })

  const anyCount = fc.integer({ min: 1, max: 10 })
  const anyStep = fc.oneof(
    fc.constantFrom(trigger, cancel, expire, remainder),
    anyCount.map(match),
    anyCount.map(settle),
    anyCount.map((count) => unwind(count)),
    anyCount.map((count) => unwind(count, 'SETTLEMENT_REVERTED')),
  )

  it('over any walk, quantities add up, a reason comes with an end only, and an end is final with one event', () => {
    fc.assert(
      fc.property(fc.constantFrom(open, waiting), fc.array(anyStep, { maxLength: 40 }), (from, taken) => {
        let life = from
        let ends = 0
        for (const each of taken) {
          const verdict = step(life, each)
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
          if (life.status === 'FILLED') expect(life.filled).to.equal(life.quantity)
          if (life.status === 'CANCEL_PENDING_FINALIZE') expect(isInBook(life)).to.equal(false)
        }
      }),
    )
  })
})
