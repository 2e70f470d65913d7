/** Every state of an order with every transition: the resulting status, or the refusal. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { type OrderLife, type TransitionInput, transition } from '../../../domain/orders/order-state.ts'
import {
  cancel,
  expire,
  leave,
  match,
  open,
  remainder,
  rollback,
  settle,
  trigger,
  voidMatch,
  waiting,
  walk,
} from '../support/transitions.ts'

describe('the table of order transitions', () => {
  const closedWithPosition: TransitionInput = { kind: 'close', reason: 'POSITION_CLOSED' }
  const keyExpires: TransitionInput = { kind: 'close', reason: 'SIGNER_EXPIRED' }
  const restore: TransitionInput = { kind: 'restore', waits: false, closedBy: null }
  const restoreLeaving: TransitionInput = { kind: 'restore', waits: false, closedBy: '1-2-1-7' }
  const STEPS: Readonly<Record<string, TransitionInput>> = {
    trigger,
    match: match(3),
    'settle 3': settle(3),
    'settle all': settle(10),
    void: voidMatch(3),
    'void, ending': voidMatch(3, 'SETTLEMENT_REVERTED'),
    cancel,
    expire,
    'key expires': keyExpires,
    remainder,
    'position closed': closedWithPosition,
    rollback: rollback(3),
    'rollback, foreign': rollback(3, 0),
    restore,
    'restore, leaving': restoreLeaving,
    leave,
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
    leaving: walk(open, [leave]).life,
    'leaving before its trigger': walk(waiting, [leave]).life,
    'leaving, settling': walk(open, [match(3), leave]).life,
    'left and ended': walk(open, [leave, closedWithPosition]).life,
  }

  const O = 'OPEN'
  const P = 'PENDING_TRIGGER'
  const C = 'CANCELLED'
  const X = 'EXPIRED'
  const F = 'FILLED'
  const W = 'CANCEL_PENDING_FINALIZE'
  const ended = Array(11).fill('ALREADY_ENDED')
  /** The resulting status or the refusal of each state, by the transitions above in their order. */
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
      'NOT_CLOSED_WITH_POSITION',
      P,
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
      'NOT_CLOSED_WITH_POSITION',
      O,
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
      'NOT_CLOSED_WITH_POSITION',
      O,
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
      'NOT_CLOSED_WITH_POSITION',
      'NOT_IN_BOOK',
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
      'NOT_CLOSED_WITH_POSITION',
      O,
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
      'NOT_CLOSED_WITH_POSITION',
      'ALREADY_CLOSING',
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
      'NOT_CLOSED_WITH_POSITION',
      'ALREADY_CLOSING',
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
      'NOT_CLOSED_WITH_POSITION',
      'ALREADY_CLOSING',
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
      O,
      'ALREADY_CLOSING',
    ],
    filled: [...ended, O, O, 'NOT_CLOSED_WITH_POSITION', 'NOT_CLOSED_WITH_POSITION', 'ALREADY_ENDED'],
    'cancelled, part filled': [
      ...ended,
      W,
      C,
      'NOT_CLOSED_WITH_POSITION',
      'NOT_CLOSED_WITH_POSITION',
      'ALREADY_ENDED',
    ],
    'remainder cancelled': [
      ...ended,
      O,
      C,
      'NOT_CLOSED_WITH_POSITION',
      'NOT_CLOSED_WITH_POSITION',
      'ALREADY_ENDED',
    ],
    'expired, part filled': [
      ...ended,
      W,
      X,
      'NOT_CLOSED_WITH_POSITION',
      'NOT_CLOSED_WITH_POSITION',
      'ALREADY_ENDED',
    ],
    'position closed': [...ended, 'TOO_MUCH', 'TOO_MUCH', O, O, 'ALREADY_ENDED'],
    leaving: [
      'NOT_WAITING',
      'NOT_IN_BOOK',
      ...Array(4).fill('TOO_MUCH'),
      C,
      X,
      X,
      C,
      C,
      'TOO_MUCH',
      'TOO_MUCH',
      O,
      O,
      'ALREADY_CLOSING',
    ],
    'leaving before its trigger': [
      'NOT_WAITING',
      'NOT_IN_BOOK',
      ...Array(4).fill('TOO_MUCH'),
      C,
      X,
      X,
      C,
      C,
      'TOO_MUCH',
      'TOO_MUCH',
      O,
      O,
      'ALREADY_CLOSING',
    ],
    'leaving, settling': [
      'NOT_WAITING',
      'NOT_IN_BOOK',
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
      O,
      O,
      'ALREADY_CLOSING',
    ],
    'left and ended': [...ended, 'TOO_MUCH', 'TOO_MUCH', O, O, 'ALREADY_ENDED'],
  }
  for (const [name, life] of Object.entries(STATES)) {
    it(`when an order is ${name}, every transition leads to the status in the table`, () => {
      const names = Object.keys(STEPS)
      expect(OUTCOMES[name]).to.have.length(names.length)
      for (const [at, input] of Object.values(STEPS).entries()) {
        const before = { ...life }
        const verdict = transition(life, input)
        const outcome = verdict.ok ? verdict.value.life.status : verdict.refusal.code
        expect(outcome, `${name}, ${names[at]}`).to.equal(OUTCOMES[name]?.[at])
        expect(life, 'a step changes no order in place').to.deep.equal(before)
      }
    })
  }

  it('when a closed position is restored, an order that had not been triggered waits again', () => {
    const back = transition(STATES['position closed'] as OrderLife, {
      kind: 'restore',
      waits: true,
      closedBy: null,
    })
    expect(back).to.deep.equal({ ok: true, value: { life: waiting, events: [] } })
  })

  it('when any path to a terminal status is rolled back, the receipt is undone', () => {
    for (const before of [
      'settling',
      'settling all',
      'remainder settling',
      'cancel pending',
      'expiry pending',
    ]) {
      const life = STATES[before] as OrderLife
      const mined = walk(life, [settle(life.settling)]).life
      expect(walk(mined, [rollback(life.settling)]).life, before).to.deep.equal(life)
    }
  })
})
