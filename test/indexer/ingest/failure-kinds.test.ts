/** Real receipts of the contracts with altered logs, decoded as the indexer decodes them: each alteration yields its failure kind. */
import { expect } from 'chai'
import { getBytes } from 'ethers'
import { after, describe, it } from 'mocha'
import { type Expectation, FAILURE_KINDS } from '../../../domain/settlement/receipt.ts'
import { reconcile } from '../../../domain/settlement/reconcile.ts'
import type { ChainLog } from '../../../indexer/ports.ts'
import {
  ADDED,
  ADJUSTMENT_NONCE,
  altered,
  alteredPart,
  expectationOf,
  FIELD,
  type RecordedReceipt,
  STRANGER,
  useRecordedReceipts,
} from '../support/recorded-receipts.ts'

describe('a real receipt that is altered', () => {
  const fixture = useRecordedReceipts()
  const seen = new Set<string>()
  after(() => expect([...seen].sort()).to.deep.equal([...FAILURE_KINDS].sort()))

  const kindOf = (receipt: RecordedReceipt, logs: readonly ChainLog[], expected: Expectation) => {
    const verdict = reconcile(fixture.eventsOf(receipt, logs), expected)
    if (verdict.ok) return null
    seen.add(verdict.refusal.kind)
    return verdict.refusal.kind
  }
  const only = ({ logs }: RecordedReceipt): ChainLog => {
    const [log, second] = logs
    if (log === undefined || second !== undefined)
      throw new Error(`the receipt has ${logs.length} logs, not 1`)
    return log
  }

  describe('of a batch', () => {
    const batch = () => fixture.receipts.batch
    const kind = (logs: readonly ChainLog[]) => kindOf(batch(), logs, expectationOf(batch().part))
    const settled = () => only(batch())

    it('when nothing is altered, nothing mismatches', () => {
      expect(kind(batch().logs)).to.equal(null)
    })

    for (const [alteration, expected, alter] of [
      ['its only log is removed', 'no_trade_execution_events', () => []],
      [
        'the data of the log is cut',
        'receipt_decode_exception',
        () => [{ ...settled(), data: settled().data.slice(0, 200) }],
      ],
      [
        'the topic is that of no event',
        'receipt_decode_exception',
        () => [{ ...settled(), topics: [`0x${'ab'.repeat(32)}`, ...settled().topics.slice(1)] }],
      ],
      [
        'the second fill credits a wei to the free balance',
        'trade_events_without_position_updates',
        () => [
          alteredPart(settled(), [
            { of: 0 },
            { of: 1, at: FIELD.freeDelta, bytes: getBytes(`0x${'00'.repeat(11)}01`) },
          ]),
        ],
      ],
      [
        'the record of the second order is removed',
        'missing_expected_participants',
        () => [alteredPart(settled(), [{ of: 0 }])],
      ],
      [
        'one step is taken from the first fill',
        'missing_expected_position_updates',
        () => [
          alteredPart(settled(), [{ of: 0, at: FIELD.fill, bytes: getBytes('0x0000000001f3') }, { of: 1 }]),
        ],
      ],
      [
        'the second record is there again with another maker',
        'invalid_batch_trade_participant_coverage',
        () => [
          alteredPart(settled(), [
            { of: 0 },
            { of: 1 },
            { of: 1, at: FIELD.maker, bytes: getBytes(STRANGER) },
          ]),
        ],
      ],
      [
        'the second record is there again as a forced order',
        'invalid_forced_book_liquidation_fill_coverage',
        () => [
          alteredPart(settled(), [
            { of: 0 },
            { of: 1 },
            { of: 1, at: FIELD.forced, bytes: Uint8Array.of(0xc2) },
          ]),
        ],
      ],
    ] as const) {
      it(`when ${alteration}, it is ${expected}`, () => {
        expect(kind(alter())).to.equal(expected)
      })
    }
  })

  describe('of an adjustment', () => {
    const adjustment = () => fixture.receipts.adjustment
    const log = () => only(adjustment())
    const kind = (logs: readonly ChainLog[]) =>
      kindOf(adjustment(), logs, {
        ...{ kind: 'adjustment', account: fixture.receipts.alice, nonce: ADJUSTMENT_NONCE },
        ...{ lowest: ADDED, highest: ADDED, leverage: null },
      })

    it('when nothing is altered, nothing mismatches', () => {
      expect(kind(adjustment().logs)).to.equal(null)
    })

    for (const [alteration, expected, alter] of [
      ['its only log is removed', 'no_account_adjustment_position_updates', () => []],
      ['the data is cut', 'receipt_decode_exception', () => [{ ...log(), data: log().data.slice(0, 66) }]],
      [
        'its account is another',
        'missing_expected_participants',
        () => [altered(log(), { account: STRANGER })],
      ],
      [
        'the log of another account is added',
        'invalid_position_update_participant_coverage',
        () => [altered(log(), { account: STRANGER }), log()],
      ],
      ['its nonce is another', 'missing_expected_position_updates', () => [altered(log(), { nonce: 4n })]],
      [
        'its amount is a wei more',
        'missing_expected_position_updates',
        () => [altered(log(), { amount: ADDED + 1n })],
      ],
      [
        'the margin after it is zero',
        'missing_expected_position_updates',
        () => [altered(log(), { foldedMargin: 0n })],
      ],
    ] as const) {
      it(`when ${alteration}, it is ${expected}`, () => {
        expect(kind(alter())).to.equal(expected)
      })
    }
  })

  describe('of an inheritance', () => {
    const inheritance = () => fixture.receipts.inheritance
    const log = () => only(inheritance())
    const kind = (logs: readonly ChainLog[], receipt = inheritance()) =>
      kindOf(receipt, logs, {
        ...{ kind: 'inheritance', actionId: 2, account: fixture.receipts.alice },
        backstop: fixture.receipts.backstop,
      })

    it('when nothing is altered, nothing mismatches', () => {
      expect(kind(inheritance().logs)).to.equal(null)
    })

    it('when the contract itself refuses it for want of a backstop, it is backstop_inheritance_failed_only', () => {
      const { failedInheritance } = fixture.receipts
      expect(kind(failedInheritance.logs, failedInheritance)).to.equal('backstop_inheritance_failed_only')
    })

    for (const [alteration, expected, alter] of [
      ['its only log is removed', 'no_liquidation_settlement_events', () => []],
      [
        'its log is one of a failure',
        'backstop_inheritance_failed_only',
        () => fixture.receipts.failedInheritance.logs,
      ],
      [
        'the reason of its failure is unknown',
        'receipt_decode_exception',
        () => [altered(only(fixture.receipts.failedInheritance), { reason: 0 })],
      ],
      [
        'its account is another',
        'missing_expected_participants',
        () => [altered(log(), { account: STRANGER })],
      ],
      [
        'another account is inherited too',
        'invalid_position_update_participant_coverage',
        () => [altered(log(), { account: STRANGER }), log()],
      ],
      [
        'its action is another',
        'invalid_position_update_participant_coverage',
        () => [altered(log(), { actionId: 3n })],
      ],
      [
        'its size is a step less',
        'missing_expected_position_updates',
        () => [altered(log(), { size: 499n })],
      ],
    ] as const) {
      it(`when ${alteration}, it is ${expected}`, () => {
        expect(kind(alter())).to.equal(expected)
      })
    }
  })

  describe('of a deleveraging', () => {
    const deleveraging = () => fixture.receipts.deleveraging
    const log = () => only(deleveraging())
    const kind = (logs: readonly ChainLog[], receipt = deleveraging(), counterparty = fixture.receipts.bob) =>
      kindOf(receipt, logs, {
        ...{ kind: 'deleveraging', actionId: 2, account: fixture.receipts.alice },
        legs: [{ counterparty, steps: 400 }],
      })
    const leg = (changes: Record<string, unknown> = {}) => {
      const { legs } = fixture.eventsOf(deleveraging(), deleveraging().logs).deleveraged[0] ?? { legs: [] }
      return { ...legs[0], ...changes }
    }

    it('when nothing is altered, nothing mismatches', () => {
      expect(kind(deleveraging().logs)).to.equal(null)
    })

    it('when the contract itself closes nothing, because no counterparty qualifies, it is no_adl_trade_events', () => {
      const { emptyDeleveraging } = fixture.receipts
      expect(kind(emptyDeleveraging.logs, emptyDeleveraging, STRANGER)).to.equal('no_adl_trade_events')
    })

    for (const [alteration, expected, alter] of [
      ['its only log is removed', 'no_adl_settlement_events', () => []],
      ['its legs are removed', 'no_adl_trade_events', () => [altered(log(), { legs: [] })]],
      [
        'its only leg has no steps',
        'no_adl_trade_events',
        () => [altered(log(), { legs: [leg({ steps: 0, payout: 0n })] })],
      ],
      [
        'its payout is a wei less',
        'trade_events_without_position_updates',
        () => [altered(log(), { legs: [leg({ payout: (leg().payout as bigint) - 1n })] })],
      ],
      [
        'its action is another',
        'invalid_position_update_participant_coverage',
        () => [altered(log(), { actionId: 3n })],
      ],
    ] as const) {
      it(`when ${alteration}, it is ${expected}`, () => {
        expect(kind(alter())).to.equal(expected)
      })
    }
  })
})
