/** The reconciler: every kind of mismatch, told apart, in the order of the checks. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { BatchSettled, SettledFill } from '../../domain/settlement.ts'
import { type Expectation, type ReceiptEvents, reconcile } from '../../indexer/reconcile.ts'

const fill = (maker: string, side: 'LONG' | 'SHORT', change: Partial<SettledFill> = {}): SettledFill =>
  ({ maker, salt: 1n, side, fill: 5, taker: side === 'LONG' ? 5 : 0, ...change }) as SettledFill

const settled = (change: Partial<BatchSettled> = {}): BatchSettled =>
  ({
    ...{ actionId: 9, batchId: 4, part: 1, parts: 1, asOf: 1_000, price: 100 },
    ...{ fills: [fill('0xa', 'LONG'), fill('0xb', 'SHORT')], ...change },
  }) as BatchSettled

const expected: Expectation = {
  ...{ actionId: 9, batchId: 4, part: 1, parts: 1, asOf: 1_000, price: 100 },
  fills: [
    { maker: '0xa', salt: 1n, side: 'LONG', steps: 5, takerSteps: 5 },
    { maker: '0xb', salt: 1n, side: 'SHORT', steps: 5, takerSteps: 0 },
  ] as unknown as Expectation['fills'],
}

const events = (change: Partial<ReceiptEvents> = {}): ReceiptEvents => ({
  ...{ settled: settled(), undecodable: null, movesPositions: true, ...change },
})

const failure = (change: Partial<ReceiptEvents>, of: Expectation | null = expected) => {
  const verdict = reconcile(events(change), of)
  return verdict.ok ? null : verdict.refusal
}

const kind = (change: Partial<ReceiptEvents>, of: Expectation | null = expected) => failure(change, of)?.kind
const withFills = (...fills: SettledFill[]) => ({ settled: settled({ fills }) })

describe('reconcile', () => {
  it('given what was sent, it agrees', () => {
    expect(failure({})).to.equal(null)
    expect(failure({}, { ...expected, actionId: null })).to.equal(null)
  })

  it('given a log that cannot be read, it says why, whatever else there is', () => {
    expect(failure({ undecodable: 'short', settled: null })).to.deep.equal({
      kind: 'receipt_decode_exception',
      reason: 'short',
    })
  })

  it('given a receipt without events, it misses the execution', () => {
    expect(kind({ settled: null })).to.equal('no_trade_execution_events')
  })

  it('given events that our rules cannot follow, it misses the position updates', () => {
    expect(kind({ movesPositions: false })).to.equal('trade_events_without_position_updates')
  })

  it('given a maker without any fill, it misses the participant', () => {
    expect(kind(withFills(fill('0xa', 'LONG')))).to.equal('missing_expected_participants')
  })

  for (const [what, change] of [
    ['another order of the maker', { salt: 2n }],
    ['another quantity', { fill: 4 }],
    ['another taker share', { taker: 4 }],
    ['the other side', { side: 'SHORT' }],
  ] as const) {
    it(`given ${what}, it misses the position update`, () => {
      const fills = [fill('0xa', 'LONG', change as Partial<SettledFill>), fill('0xb', 'SHORT')]
      expect(kind(withFills(...fills))).to.equal('missing_expected_position_updates')
    })
  }

  it('given a stranger, or a part that nobody sent, the coverage is wrong', () => {
    const fills = [fill('0xa', 'LONG'), fill('0xb', 'SHORT'), fill('0xc', 'LONG')]
    expect(kind(withFills(...fills))).to.equal('invalid_batch_trade_participant_coverage')
    expect(kind({}, null)).to.equal('invalid_batch_trade_participant_coverage')
  })

  for (const change of [{ actionId: 8 }, { price: 101 }, { asOf: 999 }, { parts: 2 }] as const) {
    it(`given another head (${Object.keys(change)[0]}), it names both values`, () => {
      const [field, value] = Object.entries(change)[0] as [keyof Expectation, number]
      const found = failure({ settled: settled(change as Partial<BatchSettled>) })
      expect(found?.kind).to.equal('invalid_batch_trade_participant_coverage')
      expect(found?.reason).to.include(String(value)).and.to.include(String(expected[field]))
    })
  }
})
