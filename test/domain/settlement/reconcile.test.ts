/** Tests every kind of mismatch with a receipt that has this flaw and no other. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { PositionInherited, PositionsDeleveraged } from '../../../domain/risk/risk-replay.ts'
import {
  type AdjustmentEvent,
  type AdjustmentExpectation,
  type DeleveragingExpectation,
  type Expectation,
  type FailureKind,
  type InheritanceExpectation,
  NO_EVENTS,
  type PartExpectation,
  type ReceiptEvents,
} from '../../../domain/settlement/receipt.ts'
import { reconcile } from '../../../domain/settlement/reconcile.ts'
import type { BatchSettled, SettledFill } from '../../../domain/settlement/settlement.ts'

const seen = new Set<FailureKind>()

/** The mismatch, or null. Every kind that occurs is recorded. */
function judge(events: Partial<ReceiptEvents>, expected: Expectation | null) {
  const verdict = reconcile({ ...NO_EVENTS, ...events }, expected)
  if (verdict.ok) return null
  seen.add(verdict.refusal.kind as FailureKind)
  return verdict.refusal
}

const kind = (events: Partial<ReceiptEvents>, expected: Expectation | null) => judge(events, expected)?.kind

// ---------------------------------------------------------------------- a batch

const fill = (maker: string, side: 'LONG' | 'SHORT', change: Partial<SettledFill> = {}): SettledFill =>
  ({
    maker,
    salt: 1n,
    isForced: false,
    side,
    fill: 5,
    taker: side === 'LONG' ? 5 : 0,
    ...change,
  }) as SettledFill

const settled = (change: Partial<BatchSettled> = {}): BatchSettled =>
  ({
    ...{ actionId: 9, batchId: 4, part: 1, parts: 1, asOf: 1_000, price: 100 },
    ...{ fills: [fill('0xa', 'LONG'), fill('0xb', 'SHORT')], ...change },
  }) as BatchSettled

const sent = (maker: string, side: 'LONG' | 'SHORT', isForced = false) => ({
  ...{ maker, salt: 1n, isForced, side, steps: 5, takerSteps: side === 'LONG' ? 5 : 0 },
})

const part: PartExpectation = {
  ...{ kind: 'part', actionId: 9, batchId: 4, part: 1, parts: 1, asOf: 1_000, price: 100 },
  fills: [sent('0xa', 'LONG'), sent('0xb', 'SHORT')] as unknown as PartExpectation['fills'],
}

const withFills = (...fills: SettledFill[]) => ({ settled: settled({ fills }) })

describe('reconcile: batch', () => {
  it('when the receipt matches the expectation, it is accepted', () => {
    expect(judge({ settled: settled() }, part)).to.equal(null)
    expect(judge({ settled: settled() }, { ...part, actionId: null })).to.equal(null)
  })

  it('when a log cannot be decoded, it reports the reason, whatever else the receipt contains', () => {
    expect(judge({ undecodable: 'short' }, part)).to.deep.equal({
      kind: 'receipt_decode_exception',
      reason: 'short',
    })
  })

  it('when the receipt has no events, it reports missing execution events', () => {
    expect(kind({}, part)).to.equal('no_trade_execution_events')
    expect(kind({}, null)).to.equal('no_trade_execution_events')
  })

  it('when the positions do not follow from the events, it reports missing position updates', () => {
    const flawed = { settled: settled(), movesPositions: false }
    expect(kind(flawed, part)).to.equal('trade_events_without_position_updates')
    expect(kind(flawed, null)).to.equal('trade_events_without_position_updates')
  })

  it('when an expected maker has no fill, it reports a missing participant', () => {
    expect(kind(withFills(fill('0xa', 'LONG')), part)).to.equal('missing_expected_participants')
  })

  for (const [what, change] of [
    ['another order of the maker', { salt: 2n }],
    ['another quantity', { fill: 4 }],
    ['another taker share', { taker: 4 }],
    ['the other side', { side: 'SHORT' }],
  ] as const) {
    it(`when the event has ${what}, it reports a missing position update`, () => {
      const fills = [fill('0xa', 'LONG', change as Partial<SettledFill>), fill('0xb', 'SHORT')]
      expect(kind(withFills(...fills), part)).to.equal('missing_expected_position_updates')
    })
  }

  it('when the event has an unexpected maker, or no part was expected, it reports wrong participant coverage', () => {
    const fills = [fill('0xa', 'LONG'), fill('0xb', 'SHORT'), fill('0xc', 'LONG')]
    expect(kind(withFills(...fills), part)).to.equal('invalid_batch_trade_participant_coverage')
    expect(kind({ settled: settled() }, null)).to.equal('invalid_batch_trade_participant_coverage')
  })

  for (const change of [{ actionId: 8 }, { price: 101 }, { asOf: 999 }, { parts: 2 }] as const) {
    it(`when ${Object.keys(change)[0]} differs, it reports the received and the expected value`, () => {
      const [field, value] = Object.entries(change)[0] as [keyof PartExpectation, number]
      const found = judge({ settled: settled(change as Partial<BatchSettled>) }, part)
      expect(found?.kind).to.equal('invalid_batch_trade_participant_coverage')
      expect(found?.reason).to.include(String(value)).and.to.include(String(part[field]))
    })
  }
})

describe('reconcile: batch with a liquidation', () => {
  const forced: PartExpectation = {
    ...part,
    fills: [sent('0xa', 'LONG'), sent('0xb', 'SHORT', true)] as unknown as PartExpectation['fills'],
  }
  const liquidated = (change: Partial<SettledFill> = {}) =>
    fill('0xb', 'SHORT', { isForced: true, ...change })
  const buyer = fill('0xa', 'LONG')
  const WRONG = 'invalid_forced_book_liquidation_fill_coverage'

  it('when the event contains the liquidation that was sent, it accepts', () => {
    expect(judge(withFills(buyer, liquidated()), forced)).to.equal(null)
  })

  for (const [what, got, expected] of [
    ['no liquidation', [buyer], forced],
    ['an order in place of the liquidation', [buyer, fill('0xb', 'SHORT')], forced],
    ['another number of the liquidation', [buyer, liquidated({ salt: 2n })], forced],
    ['another quantity of the liquidation', [buyer, liquidated({ fill: 4 as never })], forced],
    ['the other side of the liquidation', [buyer, liquidated({ side: 'LONG' })], forced],
    ['one more liquidation', [buyer, liquidated(), liquidated({ maker: '0xc' as never })], forced],
    ['a liquidation that was not sent', [buyer, liquidated()], part],
  ] as const) {
    it(`when the event has ${what}, it reports wrong liquidation coverage`, () => {
      expect(kind(withFills(...got), expected)).to.equal(WRONG)
    })
  }

  it('when an order has the number of a liquidation as its salt, it distinguishes the two', () => {
    const both = {
      ...forced,
      fills: [...forced.fills, sent('0xb', 'SHORT')] as unknown as PartExpectation['fills'],
    }
    expect(judge(withFills(buyer, liquidated(), fill('0xb', 'SHORT')), both)).to.equal(null)
    expect(kind(withFills(buyer, liquidated()), both)).to.equal('missing_expected_position_updates')
  })
})

// ---------------------------------------------------------------------- an adjustment

describe('reconcile: adjustment', () => {
  const expected = {
    ...{ kind: 'adjustment', account: '0xa', nonce: 7n, lowest: 10n, highest: 20n, leverage: null },
  } as unknown as AdjustmentExpectation
  const adjusted = (change: Partial<AdjustmentEvent> = {}) =>
    ({ account: '0xa', nonce: 7n, amount: 15n, leverage: null, ...change }) as unknown as AdjustmentEvent
  const found = (...events: AdjustmentEvent[]) => kind({ adjusted: events }, expected)

  it('when the amount equals either bound, it accepts', () => {
    for (const amount of [10n, 15n, 20n]) expect(found(adjusted({ amount }))).to.equal(undefined)
    const leveraged = { ...expected, leverage: 5 }
    expect(judge({ adjusted: [adjusted({ leverage: 5 })] }, leveraged)).to.equal(null)
  })

  it('when the receipt has no adjustment event, it reports that nothing was adjusted', () => {
    expect(found()).to.equal('no_account_adjustment_position_updates')
  })

  it('when only another account was adjusted, it reports a missing participant', () => {
    expect(found(adjusted({ account: '0xb' as never }))).to.equal('missing_expected_participants')
  })

  it('when another account was adjusted as well, or the same account twice, it reports wrong participant coverage', () => {
    const wrong = 'invalid_position_update_participant_coverage'
    expect(found(adjusted(), adjusted({ account: '0xb' as never }))).to.equal(wrong)
    expect(found(adjusted(), adjusted())).to.equal(wrong)
  })

  for (const change of [{ nonce: 8n }, { amount: 9n }, { amount: 21n }, { leverage: 5 }]) {
    it(`when the event has another ${Object.entries(change)[0]?.join(' ')}, it reports a missing position update`, () => {
      expect(found(adjusted(change))).to.equal('missing_expected_position_updates')
    })
  }

  it('when no adjustment was expected, it reports wrong participant coverage', () => {
    expect(kind({ adjusted: [adjusted()] }, null)).to.equal('invalid_position_update_participant_coverage')
  })
})

// ---------------------------------------------------------------------- backstop

describe('reconcile: inheritance by the backstop', () => {
  const expected = {
    ...{ kind: 'inheritance', actionId: 9, account: '0xa', backstop: '0xf' },
  } as unknown as InheritanceExpectation
  const inherited = (change: Partial<PositionInherited> = {}) =>
    ({ actionId: 9, account: '0xa', backstop: '0xf', ...change }) as unknown as PositionInherited
  const failed = [
    { actionId: 9, account: '0xa', backstop: '0xf', reason: 'CAP_EXCEEDED', needed: 2n, available: 1n },
  ] as unknown as ReceiptEvents['inheritanceFailed']

  it('when the receipt matches the expectation, it is accepted', () => {
    expect(judge({ inherited: [inherited()] }, expected)).to.equal(null)
  })

  it('when the receipt has no inheritance event, it reports that nothing was settled', () => {
    expect(kind({}, expected)).to.equal('no_liquidation_settlement_events')
  })

  it('when the inheritance failed, it reports the reason with the needed and the available amount', () => {
    const mismatch = judge({ inheritanceFailed: failed }, expected)
    expect(mismatch?.kind).to.equal('backstop_inheritance_failed_only')
    expect(mismatch?.reason).to.equal('CAP_EXCEEDED: 2 needed, 1 available')
    expect(judge({ inheritanceFailed: failed, inherited: [inherited()] }, expected)).to.equal(null)
  })

  it('when another account or backstop is in the event, it reports a missing participant', () => {
    for (const change of [{ account: '0xb' }, { backstop: '0xe' }]) {
      const events = { inherited: [inherited(change as unknown as Partial<PositionInherited>)] }
      expect(kind(events, expected)).to.equal('missing_expected_participants')
    }
  })

  it('when there is a second inheritance, another action or no expectation, it reports wrong participant coverage', () => {
    const wrong = 'invalid_position_update_participant_coverage'
    const twice = [inherited(), inherited({ account: '0xb' as never })]
    expect(kind({ inherited: twice }, expected)).to.equal(wrong)
    expect(kind({ inherited: [inherited({ actionId: 8 })] }, expected)).to.equal(wrong)
    expect(kind({ inherited: [inherited()] }, null)).to.equal(wrong)
    expect(kind({ inheritanceFailed: failed }, null)).to.equal(wrong)
  })

  it('when the account had another position than was inherited, it reports a missing position update', () => {
    const events = { inherited: [inherited()], movesPositions: false }
    expect(kind(events, expected)).to.equal('missing_expected_position_updates')
  })
})

// ---------------------------------------------------------------------- deleveraging

describe('reconcile: deleveraging', () => {
  const expected = {
    ...{ kind: 'deleveraging', actionId: 9, account: '0xa' },
    legs: [
      { counterparty: '0xb', steps: 5 },
      { counterparty: '0xc', steps: 3 },
    ],
  } as unknown as DeleveragingExpectation
  const event = (...legs: [string, number][]) =>
    ({
      ...{ actionId: 9, account: '0xa' },
      legs: legs.map(([counterparty, steps]) => ({ counterparty, steps, payout: 1n })),
    }) as unknown as PositionsDeleveraged
  const found = (of: PositionsDeleveraged, change: Partial<ReceiptEvents> = {}) =>
    kind({ deleveraged: [of], ...change }, expected)

  it('when the receipt matches the expectation, it is accepted', () => {
    expect(found(event(['0xb', 5], ['0xc', 3]))).to.equal(undefined)
    expect(found(event(['0xb', 5], ['0xc', 3], ['0xd', 0]))).to.equal(undefined)
  })

  it('when the receipt has no deleveraging event, it reports that nothing was settled', () => {
    expect(kind({}, expected)).to.equal('no_adl_settlement_events')
  })

  it('when the event closed no steps, it reports that nothing was traded', () => {
    expect(found(event(['0xb', 0], ['0xc', 0]))).to.equal('no_adl_trade_events')
    expect(found(event())).to.equal('no_adl_trade_events')
  })

  it('when the positions do not follow from the legs, it reports missing position updates', () => {
    const flawed = found(event(['0xb', 5], ['0xc', 3]), { movesPositions: false })
    expect(flawed).to.equal('trade_events_without_position_updates')
  })

  it('when a counterparty was left out, it reports a missing participant', () => {
    expect(found(event(['0xb', 5], ['0xc', 0]))).to.equal('missing_expected_participants')
    expect(found({ ...event(['0xb', 5], ['0xc', 3]), account: '0xe' as never })).to.equal(
      'missing_expected_participants',
    )
  })

  it('when a leg closed fewer steps, it reports a missing position update', () => {
    expect(found(event(['0xb', 5], ['0xc', 2]))).to.equal('missing_expected_position_updates')
  })

  it('when there is an unexpected counterparty, another action or no expectation, it reports wrong participant coverage', () => {
    const wrong = 'invalid_position_update_participant_coverage'
    expect(found(event(['0xb', 5], ['0xc', 3], ['0xd', 1]))).to.equal(wrong)
    expect(found({ ...event(['0xb', 5], ['0xc', 3]), actionId: 8 })).to.equal(wrong)
    expect(kind({ deleveraged: [event(['0xb', 5])] }, null)).to.equal(wrong)
  })
})

describe('failure kinds of the contract with traders', () => {
  it('when all receipts of this suite are reconciled, every failure kind occurs', () => {
    expect([...seen].sort()).to.deep.equal([
      'backstop_inheritance_failed_only',
      'invalid_batch_trade_participant_coverage',
      'invalid_forced_book_liquidation_fill_coverage',
      'invalid_position_update_participant_coverage',
      'missing_expected_participants',
      'missing_expected_position_updates',
      'no_account_adjustment_position_updates',
      'no_adl_settlement_events',
      'no_adl_trade_events',
      'no_liquidation_settlement_events',
      'no_trade_execution_events',
      'receipt_decode_exception',
      'trade_events_without_position_updates',
    ] satisfies FailureKind[])
  })
})
