/** What holds of every decision on signing an adjustment, over random states of account, market and node. */
import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { fromStoredFees } from '../../../domain/market/fee-periods.ts'
import { type MarketTerms, termsAt } from '../../../domain/market/in-force.ts'
import { fromStoredTerms } from '../../../domain/market/stored-terms.ts'
import { type Adjustment, holdOf, kindOf } from '../../../domain/positions/adjustment-attempt.ts'
import {
  adjust,
  decideSigning,
  latestAsOf,
  mayAdjust,
  PREPARED_LIFETIME,
  type SigningDecision,
  type SigningInput,
} from '../../../domain/positions/adjustment-signing.ts'
import { fundingIndexAt, NO_FUNDING } from '../../../domain/prices/funding-state.ts'
import type { Millis, Price, Quote, Rate, Seconds, Steps } from '../../../domain/units.ts'
import { e18, perpetual } from '../../support/markets.ts'

const NOW = 1_700_000_000_000 as Millis
const SIZE = Number(e18('10') / perpetual.step) as Steps

const RULES = {
  ...{
    kind: perpetual.kind,
    tick: perpetual.tick,
    maxAge: 5_000 as Millis,
    moveBase: 10n ** 6n,
    moveSlope: 10n ** 6n,
  },
  moveWindow: 1_000 as Millis,
}

const wei = (whole: number): Quote => e18(String(whole)) as Quote
const around = (ms: number, spread: number) =>
  fc.integer({ min: -spread, max: spread }).map((by) => (NOW + ms + by) as Millis)
/** Mostly the first, so that the rules behind it are reached as well. */
const mostly = <Value>(usual: Value, rare: fc.Arbitrary<Value>) =>
  fc.oneof({ weight: 6, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: rare })

const anyAdjustment: fc.Arbitrary<Adjustment> = fc.oneof(
  fc.record({
    amount: fc.integer({ min: 1, max: 300 }).map(wei),
    ...{ removeMode: fc.constant('exact' as const), minAmount: fc.constant(0n as Quote) },
  }),
  fc.record({
    amount: fc.integer({ min: -300, max: -1 }).map(wei),
    removeMode: fc.constantFrom('exact' as const, 'up_to' as const),
    minAmount: fc.integer({ min: 0, max: 20 }).map(wei),
  }),
  fc.record({
    leverage: fc.integer({ min: 1, max: perpetual.maxLeverage + 1 }),
    maxMarginIn: fc.integer({ min: 0, max: 400 }).map(wei),
    minMarginOut: mostly(0n as Quote, fc.integer({ min: 0, max: 50 }).map(wei)),
  }),
)

const anyTerms: fc.Arbitrary<MarketTerms> = fc.record({
  mode: mostly(
    'open' as const,
    fc.constantFrom('cancel_only' as const, 'halted' as const, 'settled' as const),
  ),
  chain: fc.constant(fromStoredTerms(null, perpetual)),
  closing: fc.constant({ expiresAt: 0 as Millis, settlingAt: 0 as Millis }),
  ...{ fees: fc.constant(fromStoredFees([])), reservedFee: fc.constant(0n as Rate) },
})

const anyInput: fc.Arbitrary<SigningInput> = fc.record({
  adjustment: anyAdjustment,
  deadline: mostly(NOW / 1000 + 60, fc.integer({ min: NOW / 1000 - 2, max: NOW / 1000 + 2 })).map(
    (seconds) => seconds as Seconds,
  ),
  createdAt: fc.oneof(around(-1_000, 1_000), around(-PREPARED_LIFETIME, 2_000)),
  now: fc.constant(NOW),
  nonce: fc.integer({ min: 0, max: 3 }),
  minimumNonce: mostly(0n, fc.bigInt({ min: 0n, max: 4n })),
  funds: fc.integer({ min: 0, max: 400 }).map(wei),
  sessionKey: mostly(
    null,
    fc.record({
      permissions: fc.constantFrom(1, 2, 3),
      expires_at: fc.integer({ min: NOW / 1000 - 1, max: NOW / 1000 + 1 }),
      ...{ revoked_at: fc.constantFrom(null, NOW / 1000 - 9), is_revoking: fc.boolean() },
    }),
  ),
  headTime: fc.oneof(
    { weight: 6, arbitrary: around(0, 20_000) },
    { weight: 1, arbitrary: fc.constant(null) },
  ),
  isMoving: mostly(false, fc.constant(true)),
  position: fc.record({
    size: fc.constantFrom(SIZE, -SIZE as Steps),
    entryNotional: fc.constant(wei(1000)),
    ...{
      foldedMargin: fc.integer({ min: 10, max: 400 }).map(wei),
      leverage: fc.integer({ min: 1, max: 20 }),
    },
  }),
  spec: fc.constant(perpetual),
  terms: anyTerms,
  funding: fc.constant(NO_FUNDING),
  report: fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({
        price: fc.integer({ min: 90, max: 110 }).map((whole) => wei(whole) as bigint as Price),
        ...{ observedAt: around(0, 4_000), signatures: fc.constant('0x' as const) },
      }),
    },
    { weight: 1, arbitrary: fc.constant(null) },
  ),
  usedReport: fc.constant(null),
  rules: mostly(RULES, fc.constant(null)),
})

const each = (law: (input: SigningInput, decision: SigningDecision) => void): void =>
  fc.assert(
    fc.property(anyInput, (input) => law(input, decideSigning(input))),
    { numRuns: 3_000 },
  )

/** What the contract moves at the decided time and price; null if it refuses. */
function movedBy(input: SigningInput, asOf: Millis, oracle: Price): bigint | null {
  const { spec } = termsAt(input.spec, input.terms, asOf)
  const at = { fundingIndex: fundingIndexAt(input.funding, asOf), oracle }
  const verdict = adjust(spec, input.position, input.adjustment, at)
  return verdict.ok ? verdict.value.moved : null
}

describe('the decision on signing an adjustment, over random states', () => {
  it("when the keeper signs an adjustment, the contract accepts it with the account's funds, in time, on the newest report", () => {
    const signed: string[] = []
    each((input, decision) => {
      if (decision.kind !== 'sign') return
      const { asOf, report, maxRemovable } = decision
      signed.push(kindOf(input.adjustment))
      expect(report).to.equal(input.report)
      expect(asOf <= NOW && asOf <= latestAsOf(input.deadline)).to.equal(true)
      expect(mayAdjust(input.terms.mode, input.adjustment) && !input.isMoving).to.equal(true)
      expect(BigInt(input.nonce) >= input.minimumNonce).to.equal(true)
      const moved = movedBy(input, asOf, report.price)
      expect(moved === null || moved > input.funds || moved > holdOf(input.adjustment)).to.equal(false)
      expect(maxRemovable !== null).to.equal(kindOf(input.adjustment) === 'remove_margin')
      if (maxRemovable !== null) expect(-(moved as bigint) <= maxRemovable).to.equal(true)
    })
    expect(new Set(signed).size).to.equal(3)
  })

  it('when the attempt is older than its lifetime, it never waits; when it is younger, nothing but a rule aborts it', () => {
    each((input, decision) => {
      const isOver = NOW - input.createdAt > PREPARED_LIFETIME
      if (isOver) expect(decision.kind).to.not.equal('wait')
      else if (decision.kind === 'abort') expect(decision.reason).to.not.match(/^not executed within/)
    })
  })

  it('when the keeper waits, the same state without the cause of the wait is signed or aborted by a rule', () => {
    each((input, decision) => {
      if (decision.kind !== 'wait') return
      const report = { price: wei(100) as bigint as Price, observedAt: NOW, signatures: '0x' as const }
      const settled = { ...input, isMoving: false, headTime: NOW, report, rules: input.rules ?? RULES }
      const next = decideSigning(settled)
      if (next.kind === 'abort') expect(next.reason).to.not.match(/^not executed within/)
      expect(next.kind).to.not.equal('wait')
    })
  })
})
