/** Calls and errors of each kind of action, compared with the contract's ABI. */
import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import type { ActionKind } from '../../../domain/actions/action.ts'
import {
  callOf,
  expectationOf,
  responseTo,
  withoutRepeatedProof,
} from '../../../domain/actions/action-rules.ts'
import { expectationOf as expectationOfCalldata } from '../../../tasks/sent.ts'
import { IIsolatedTrader__factory } from '../../../typechain-types/factories/interfaces/IIsolatedTrader__factory.ts'
import { IMarginBank__factory } from '../../../typechain-types/factories/interfaces/IMarginBank__factory.ts'
import { perpetual } from '../../support/markets.ts'
import { anySingleAction } from '../support/any-actions.ts'

const MARKET = IIsolatedTrader__factory.createInterface()
const BACKSTOP = `0x${'be'.repeat(20)}` as const

const errorNames = [...IIsolatedTrader__factory.abi, ...IMarginBank__factory.abi].flatMap((entry) =>
  entry.type === 'error' ? [entry.name] : [],
)
const expectedErrors = (kind: ActionKind) => [
  ...new Set(errorNames.filter((name) => responseTo(kind, name).isExpected)),
]

describe('calls of the actions', () => {
  it('when a single action is encoded, its calldata has the expectation of the action', () => {
    fc.assert(
      fc.property(anySingleAction, (drawn) => {
        const action = drawn.kind === 'inherit_position' ? { ...drawn, backstop: BACKSTOP as never } : drawn
        const { name, args } = callOf(action, 77, perpetual)
        const data = MARKET.encodeFunctionData(name as 'updateFunding', args as never)
        const finalPrice = drawn.report.price
        expect(expectationOfCalldata(data, { backstop: BACKSTOP, finalPrice })).to.deep.equal(
          expectationOf(action, 77),
        )
        expect(MARKET.parseTransaction({ data })?.args.asOf).to.equal(BigInt(action.asOf))
      }),
    )
  })

  it('when a funding update has no session, its session report is empty', () => {
    const action = fc.sample(anySingleAction, 50).find(({ kind }) => kind === 'update_funding')
    const { args } = callOf({ ...(action as object), session: null } as never, 1, perpetual)
    expect(args.at(-1)).to.deep.equal({ price: 0n, observedAt: 0, proof: '0x' })
  })
})

describe('proofs of reports', () => {
  it('when the action before it has the same report, its proof is omitted and nothing else changes', () => {
    fc.assert(
      fc.property(anySingleAction, (action) => {
        const { price, observedAt } = action.report
        const bare = withoutRepeatedProof(action, { price, observedAt })
        const signatures = action.kind === 'finalize_market' ? action.report.signatures : '0x'
        expect(bare).to.deep.equal({ ...action, report: { ...action.report, signatures } })
        for (const other of [
          null,
          { price: (price + 1n) as typeof price, observedAt },
          { price, observedAt: (observedAt + 1) as typeof observedAt },
        ])
          expect(withoutRepeatedProof(action, other)).to.deep.equal(action)
      }),
    )
  })
})

describe('responses to reverted actions', () => {
  it('when asOf is ahead of the chain, an action of any kind is tried again', () => {
    for (const kind of ['settle_part', 'update_funding', 'deleverage'] as const) {
      expect(responseTo(kind, 'AsOfAhead')).to.deep.equal({ does: 'retry', isExpected: true })
    }
  })

  it('when a part reverts or is late, its batch is voided', () => {
    for (const error of ['Overfill', 'Unbalanced', null]) {
      expect(responseTo('settle_part', error).does).to.equal('void')
    }
  })

  it('when another action reverts or is late, it is dropped, whatever the error', () => {
    for (const kind of ['update_funding', 'inherit_position', 'deleverage', 'finalize_market'] as const) {
      for (const error of ['NotLiquidatable', 'Unbalanced', 'Unknown', null]) {
        expect(responseTo(kind, error).does).to.equal('drop')
      }
    }
  })

  it('when the market has moved on since the action was queued, the error is expected', () => {
    const late = ['AsOfAhead', 'AsOfStale', 'MarketNotOpen', 'ReportStale']
    const reports = ['ReportOlder', 'ReportConflict', 'ReportMoveTooLarge']
    expect(expectedErrors('settle_part')).to.have.members(['AsOfAhead', 'AsOfStale'])
    expect(expectedErrors('finalize_market')).to.have.members([
      ...['AsOfAhead', 'AsOfStale', 'MarketNotOpen', 'ActionOutOfOrder', 'FinalizeEarly'],
    ])
    expect(expectedErrors('update_funding')).to.have.members([
      ...[...late, ...reports, 'FundingRateOutOfRange', 'FundingValidityInvalid'],
      ...['SessionClosed', 'FundingIndexOutOfRange', 'BankPaused'],
    ])
    expect(expectedErrors('inherit_position')).to.have.members([
      ...[...late, ...reports, 'NotLiquidatable', 'LiquidationTooSoon', 'BackstopItself', 'BankPaused'],
      'PositionOutOfRange',
    ])
    expect(expectedErrors('deleverage')).to.have.members([
      ...[...late, ...reports, 'NotLiquidatable', 'LiquidationTooSoon', 'BackstopFirst'],
      ...['CounterpartyOutOfOrder', 'BankPaused', 'PoolInsufficient'],
    ])
  })
})
