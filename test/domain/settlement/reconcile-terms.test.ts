/** Funding updates and finalizations: their receipts against what was sent. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { FundingUpdated } from '../../../domain/prices/funding.ts'
import type { MarketEnded } from '../../../domain/risk/risk-replay.ts'
import {
  type Expectation,
  type FailureKind,
  isWithoutEffect,
  NO_EVENTS,
  type OperatorFailureKind,
  type ReceiptEvents,
} from '../../../domain/settlement/receipt.ts'
import { reconcile } from '../../../domain/settlement/reconcile.ts'
import type { HourlyFunding, Millis, Price } from '../../../domain/units.ts'

const judge = (events: Partial<ReceiptEvents>, expected: Expectation | null) => {
  const verdict = reconcile({ ...NO_EVENTS, ...events }, expected)
  return verdict.ok ? null : verdict.refusal.kind
}

describe('reconcile: funding update', () => {
  const expected: Expectation = {
    ...{ kind: 'funding', actionId: 9 },
    ...{ rate: 5n as HourlyFunding, validUntil: 2_000 as Millis },
  }
  const updated = (change: object = {}) => [
    { actionId: 9, rate: 5n, validUntil: 2_000, ...change } as unknown as FundingUpdated,
  ]

  it('when the receipt matches the expectation, it is accepted', () => {
    expect(judge({ fundingUpdated: updated() }, expected)).to.equal(null)
    expect(judge({ fundingUpdated: updated() }, { ...expected, actionId: null })).to.equal(null)
  })

  it('when the event is missing or occurs twice, it reports that', () => {
    expect(judge({}, expected)).to.equal('no_funding_update_event')
    expect(judge({ fundingUpdated: [...updated(), ...updated()] }, expected)).to.equal(
      'no_funding_update_event',
    )
  })

  it('when action, rate or validity differ, it reports other terms', () => {
    for (const change of [{ actionId: 8 }, { rate: 6n }, { validUntil: 2_001 }]) {
      expect(judge({ fundingUpdated: updated(change) }, expected)).to.equal('unexpected_action_terms')
    }
  })

  it('when no update was sent, it reports an unknown action', () => {
    expect(judge({ fundingUpdated: updated() }, null)).to.equal(
      'invalid_position_update_participant_coverage',
    )
  })
})

describe('reconcile: finalization', () => {
  const expected: Expectation = { kind: 'final_price', actionId: 9, price: 7n as Price }
  const ended = (change: object = {}) => [
    { actionId: 9, how: 'finalized', price: 7n, ...change } as unknown as MarketEnded,
  ]

  it('when the receipt matches the expectation, it is accepted', () => {
    expect(judge({ ended: ended() }, expected)).to.equal(null)
  })

  it('when the market was not finalized, it reports the missing event', () => {
    expect(judge({}, expected)).to.equal('no_final_price_event')
    expect(judge({ ended: ended({ how: 'frozen' }) }, expected)).to.equal('no_final_price_event')
  })

  it('when action or price differ, it reports other terms', () => {
    for (const change of [{ actionId: 8 }, { price: 8n }]) {
      expect(judge({ ended: ended(change) }, expected)).to.equal('unexpected_action_terms')
    }
  })

  it('when no finalization was sent, it reports an unknown action', () => {
    expect(judge({ ended: ended() }, null)).to.equal('invalid_position_update_participant_coverage')
  })
})

describe('actions without effect', () => {
  const without = (kind: FailureKind | OperatorFailureKind) => isWithoutEffect({ kind, reason: '' })

  it('when the backstop could not inherit or no counterparty qualified, the mismatch does not stop the market', () => {
    expect(without('backstop_inheritance_failed_only')).to.equal(true)
    expect(without('no_adl_trade_events')).to.equal(true)
    expect(without('no_adl_settlement_events')).to.equal(false)
    expect(without('unexpected_action_terms')).to.equal(false)
  })
})
