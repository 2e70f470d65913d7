/** When the keeper signs an accepted adjustment, when it waits, and when it gives up. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { MarketTerms } from '../../../domain/market/in-force.ts'
import { fromStoredTerms } from '../../../domain/market/stored-terms.ts'
import type { MarginAdjustment } from '../../../domain/positions/adjustment.ts'
import { expectationOf, holdOf, kindOf, payoutOf } from '../../../domain/positions/adjustment-attempt.ts'
import {
  decideSigning,
  isOutdated,
  mayAdjust,
  PREPARED_LIFETIME,
  type SigningInput,
} from '../../../domain/positions/adjustment-signing.ts'
import { NO_FUNDING } from '../../../domain/prices/funding-state.ts'
import type { Address, Millis, Price, Quote, Rate, Seconds, Steps } from '../../../domain/units.ts'
import { e18, perpetual } from '../../support/markets.ts'

const NOW = 1_700_000_000_000 as Millis
const at = (offset: number): Millis => (NOW + offset) as Millis
const change = (amount: string, removeMode: 'exact' | 'up_to' = 'exact', min = '0'): MarginAdjustment => ({
  ...{ amount: e18(amount) as Quote, removeMode, minAmount: e18(min) as Quote },
})
const LEVERAGE = { leverage: 5, maxMarginIn: e18('20') as Quote, minMarginOut: 0n as Quote }
const RULES = {
  kind: perpetual.kind,
  tick: perpetual.tick,
  maxAge: 5_000 as Millis,
  moveBase: 10n ** 6n,
  moveSlope: 10n ** 6n,
}
const report = (observedAt: Millis) => ({ price: e18('100') as Price, observedAt, signatures: '0x' as const })

const terms: MarketTerms = {
  ...{ mode: 'open', closing: { expiresAt: 0 as Millis, settlingAt: 0 as Millis }, reservedFee: 0n as Rate },
  ...{ chain: fromStoredTerms(null, perpetual), fees: [] },
}

const input = (more: Partial<SigningInput> = {}): SigningInput => ({
  ...{ adjustment: change('10'), deadline: (NOW / 1000 + 60) as Seconds, createdAt: at(-100), now: NOW },
  ...{ nonce: 1, minimumNonce: 0n, funds: e18('10') as Quote },
  ...{
    headTime: NOW,
    sessionKey: null,
    isMoving: false,
    spec: perpetual,
    terms,
    funding: NO_FUNDING,
    report: report(NOW),
  },
  position: {
    ...{ size: Number(e18('10') / perpetual.step) as Steps, entryNotional: e18('1000') as Quote },
    ...{ foldedMargin: e18('200') as Quote, leverage: 10 },
  },
  ...{ usedReport: null, rules: { ...RULES, moveWindow: 1_000 as Millis }, ...more },
})

describe('the attempt of an adjustment', () => {
  it('when it adds, it holds its amount; when it removes, nothing, and it pays at most the margin', () => {
    expect([kindOf(change('5')), holdOf(change('5')), payoutOf(change('5'), 9n as Quote)]).to.deep.equal([
      ...['add_margin', e18('5'), 0n],
    ])
    expect([kindOf(change('-5')), holdOf(change('-5'))]).to.deep.equal(['remove_margin', 0n])
    expect(payoutOf(change('-5'), e18('9') as Quote)).to.equal(e18('5'))
    expect(payoutOf(change('-500', 'up_to'), e18('9') as Quote)).to.equal(e18('9'))
    expect([kindOf(LEVERAGE), holdOf(LEVERAGE), payoutOf(LEVERAGE, 9n as Quote)]).to.deep.equal([
      ...['adjust_leverage', e18('20'), 9n],
    ])
  })

  it('when its receipt is expected, an exact amount has no room, and another has the bounds that were signed', () => {
    const boundsOf = (adjustment: Parameters<typeof holdOf>[0]) => {
      const { lowest, highest, leverage } = expectationOf(adjustment, '0xa' as Address, 3n)
      expect(lowest <= highest).to.equal(true)
      return [lowest, highest, leverage]
    }
    expect(boundsOf(change('5'))).to.deep.equal([e18('5'), e18('5'), null])
    expect(boundsOf(change('-5'))).to.deep.equal([e18('-5'), e18('-5'), null])
    expect(boundsOf(change('-5', 'up_to', '2'))).to.deep.equal([e18('-5'), e18('-2'), null])
    expect(boundsOf(change('-5', 'up_to'))).to.deep.equal([e18('-5'), -1n, null])
    expect(boundsOf(LEVERAGE).slice(1)).to.deep.equal([e18('20'), 5])
    const released = { ...LEVERAGE, maxMarginIn: 0n as Quote, minMarginOut: e18('3') as Quote }
    expect(boundsOf(released)[1]).to.equal(e18('-3'))
  })

  it('when block time is past the lifetime of the signed bytes, they are outdated; without a node they are not', () => {
    expect([isOutdated(NOW, at(10_000)), isOutdated(NOW, at(10_001)), isOutdated(NOW, null)]).to.deep.equal([
      ...[false, true, false],
    ])
  })

  it('when a market is halted or settling, only an addition is allowed; when it has ended, nothing', () => {
    const allowed = (mode: Parameters<typeof mayAdjust>[0]) => [
      ...[change('1'), change('-1'), LEVERAGE].map((adjustment) => mayAdjust(mode, adjustment)),
    ]
    expect(allowed('open')).to.deep.equal([true, true, true])
    expect(allowed('cancel_only')).to.deep.equal([true, true, true])
    expect(allowed('halted')).to.deep.equal([true, false, false])
    expect(allowed('settling')).to.deep.equal([true, false, false])
    expect(allowed('settled')).to.deep.equal([false, false, false])
  })

  it('when the deadline has passed, it is aborted before anything else is looked at', () => {
    const late = input({ deadline: (NOW / 1000 - 1) as Seconds, isMoving: true, report: null })
    expect(decideSigning(late)).to.deep.equal({ kind: 'abort', reason: 'DeadlinePassed' })
  })

  it('when the position may still change, it waits, and is aborted at the end of its lifetime', () => {
    expect(decideSigning(input({ isMoving: true })).kind).to.equal('wait')
    const old = decideSigning(input({ isMoving: true, createdAt: at(-PREPARED_LIFETIME - 1) }))
    expect(old.kind).to.equal('abort')
  })

  it('when the session key that signed may no longer act, it is aborted with the reason, also while it has to wait', () => {
    const key = { permissions: 3, expires_at: NOW / 1000 + 60, revoked_at: null, is_revoking: false }
    const decided = (change: Partial<typeof key>) => {
      const decision = decideSigning(input({ isMoving: true, sessionKey: { ...key, ...change } }))
      return decision.kind === 'abort' ? decision.reason : decision.kind
    }
    expect(decided({})).to.equal('wait')
    expect(decided({ is_revoking: true })).to.equal('SESSION_KEY_REVOKING')
    expect(decided({ expires_at: NOW / 1000 })).to.equal('SESSION_KEY_EXPIRED')
    expect(decided({ permissions: 1 })).to.equal('SESSION_KEY_NOT_PERMITTED')
  })

  it('when the nonce is invalidated or the balance withdrawn after the acceptance, it is aborted before it is sent', () => {
    const reason = (more: Partial<SigningInput>) => {
      const decision = decideSigning(input({ isMoving: true, ...more }))
      return decision.kind === 'abort' ? decision.reason : decision.kind
    }
    expect(reason({ minimumNonce: 1n })).to.equal('wait')
    expect(reason({ minimumNonce: 2n })).to.equal('MarginNonceBelowMinimum(minimum 2, nonce 1)')
    expect(reason({ funds: (e18('10') - 1n) as Quote })).to.match(/^FreeBalanceInsufficient/)
    expect(reason({ adjustment: change('-10'), funds: 0n as Quote })).to.equal('wait')
  })

  it('when a change of leverage needs more than the account has left, it is aborted before it is sent', () => {
    const decided = (funds: bigint) =>
      decideSigning(
        input({
          adjustment: { ...LEVERAGE, leverage: 4, maxMarginIn: e18('60') as Quote },
          funds: funds as Quote,
        }),
      )
    expect(decided(e18('50')).kind).to.equal('sign')
    expect(decided(e18('50') - 1n)).to.deep.equal({
      kind: 'abort',
      reason: `FreeBalanceInsufficient(available ${e18('50') - 1n}, asked ${e18('50')})`,
    })
    const reduced = input({ adjustment: { ...LEVERAGE, leverage: 10 }, funds: 0n as Quote })
    expect(decideSigning(reduced).kind).to.equal('sign')
  })

  it('when no node responds, it waits', () => {
    expect(decideSigning(input({ headTime: null }))).to.deep.equal({ kind: 'wait', for: 'no node responds' })
  })
})
