/** Whether an adjustment is accepted while its position is to be liquidated. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { TermsInForce } from '../../../domain/market/in-force.ts'
import {
  type AdjustmentAdmission,
  admitAdjustment,
  FAILURE_PAUSE,
} from '../../../domain/positions/adjustment-admission.ts'
import type { FundingIndex, Millis, Price, Quote, Seconds, Steps } from '../../../domain/units.ts'
import { e18, perpetual } from '../../support/markets.ts'

const NOW = 1_700_000_000_000 as Millis
const ago = (ms: number): Millis => (NOW - ms) as Millis

/** An addition of 900 to a long of 10 at 100 with this margin; the oracle price is 100. */
const codeOf = (margin: string, more: Partial<AdjustmentAdmission>): string => {
  const verdict = admitAdjustment({
    adjustment: { amount: e18('900') as Quote, removeMode: 'exact', minAmount: 0n as Quote },
    ...{ nonce: 1, deadline: (NOW / 1000 + 60) as Seconds, now: NOW },
    terms: { spec: perpetual, mode: 'open' } as unknown as TermsInForce,
    position: {
      ...{ size: Number(e18('10') / perpetual.step) as Steps, entryNotional: e18('1000') as Quote },
      ...{ foldedMargin: e18(margin) as Quote, leverage: 10 },
    },
    ...{ fundingIndex: 0n as FundingIndex, oracle: e18('100') as Price, available: e18('1000') as Quote },
    ...{ minimumNonce: 0n, isNonceUsed: false, isLiquidating: false, failedAt: null, ...more },
  })
  return verdict.ok ? 'accepted' : verdict.refusal.code
}

describe('the admission of an adjustment', () => {
  it('when a position is eligible for liquidation, no attempt is accepted for a minute after a sent one was aborted', () => {
    expect(codeOf('1', {})).to.equal('accepted')
    expect(codeOf('1', { failedAt: ago(FAILURE_PAUSE - 1) })).to.equal('FAILED_RECENTLY')
    expect(codeOf('1', { failedAt: ago(FAILURE_PAUSE) })).to.equal('accepted')
  })

  it('when a liquidation is running, the same pause applies; to a healthy position it does not', () => {
    expect(codeOf('200', { isLiquidating: true, failedAt: NOW })).to.equal('FAILED_RECENTLY')
    expect(codeOf('200', { failedAt: NOW })).to.equal('accepted')
  })
})
