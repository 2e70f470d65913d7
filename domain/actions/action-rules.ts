/** On-chain form of each action kind: contract call, expected receipt, and expected contract errors. */
import { toHex } from '../hex.ts'
import type { MarketSpec } from '../market/market.ts'
import type { Expectation } from '../settlement/receipt.ts'
import type { OracleReport, SettlementPart } from '../settlement/settlement.ts'
import { encodeSettleBatch } from '../settlement/settlement-codec.ts'
import type { ActionKind, SessionReport, SingleAction, SingleKind } from './action.ts'

/** A part with its fills, ready to be signed. It contains its action id. */
export interface SignablePart {
  readonly kind: 'settle_part'
  readonly part: SettlementPart
}

export type SignableAction = SignablePart | SingleAction

/** A call to the market's contract. */
export interface ContractCall {
  readonly name: string
  readonly args: readonly unknown[]
  /** Number of orders or accounts that the call writes; its gas grows with this number. */
  readonly writes: number
}

interface ActionRules<Action> {
  call(action: Action, actionId: number, spec: MarketSpec): ContractCall
  /**
   * Errors that indicate no fault of the exchange: the market's state has changed since the action was queued.
   */
  readonly expectedErrors: readonly string[]
}

interface SingleRules<Action> extends ActionRules<Action> {
  expectation(action: Action, actionId: number | null): Expectation
}

type RulesByKind = {
  readonly [Kind in SingleKind]: SingleRules<Extract<SingleAction, { kind: Kind }>>
} & { readonly settle_part: ActionRules<SignablePart> }

/** Errors that any action can get: it is late, or the market's mode or a newer report forbids it. */
const OUTRUN = [
  'AsOfStale',
  'MarketNotOpen',
  'ReportStale',
  'ReportOlder',
  'ReportConflict',
  'ReportMoveTooLarge',
]

/** Errors of a liquidation: the account has recovered, or a bank pause has just ended. */
const SPARED = ['NotLiquidatable', 'LiquidationTooSoon']

const RULES: RulesByKind = {
  settle_part: {
    call: ({ part }, _, spec) => ({
      name: 'settleBatch',
      args: [toHex(encodeSettleBatch(part, spec))],
      writes: part.fills.length,
    }),
    expectedErrors: ['AsOfStale'],
  },
  update_funding: {
    call: ({ asOf, rate, validUntil, report, session }, actionId) => ({
      name: 'updateFunding',
      args: [actionId, asOf, rate, validUntil, reportArgument(report), sessionArgument(session)],
      writes: 0,
    }),
    expectation: ({ rate, validUntil }, actionId) => ({ kind: 'funding', actionId, rate, validUntil }),
    expectedErrors: [
      ...OUTRUN,
      ...['FundingRateOutOfRange', 'FundingValidityInvalid', 'SessionClosed', 'FundingIndexOutOfRange'],
      'BankPaused',
    ],
  },
  inherit_position: {
    call: ({ asOf, account, report }, actionId) => ({
      name: 'inheritPosition',
      args: [actionId, asOf, account, reportArgument(report)],
      writes: 2,
    }),
    expectation: ({ account, backstop }, actionId) => ({ kind: 'inheritance', actionId, account, backstop }),
    expectedErrors: [...[...OUTRUN, ...SPARED], ...['BackstopItself', 'BankPaused', 'PositionOutOfRange']],
  },
  deleverage: {
    call: ({ asOf, account, legs, report }, actionId) => ({
      name: 'deleverage',
      args: [
        ...[actionId, asOf, account, legs.map(({ counterparty }) => counterparty)],
        ...[legs.map(({ steps }) => steps), reportArgument(report)],
      ],
      writes: legs.length + 1,
    }),
    expectation: ({ account, legs }, actionId) => ({ kind: 'deleveraging', actionId, account, legs }),
    expectedErrors: [
      ...OUTRUN,
      ...SPARED,
      ...['BackstopFirst', 'CounterpartyOutOfOrder', 'BankPaused', 'PoolInsufficient'],
    ],
  },
  finalize_market: {
    call: ({ asOf }, actionId) => ({
      name: 'finalizeMarket',
      args: [actionId, asOf],
      writes: 0,
    }),
    expectation: ({ report }, actionId) => ({ kind: 'final_price', actionId, price: report.price }),
    // Any account can finalize the market, or replace the report during the dispute window.
    expectedErrors: ['AsOfStale', 'MarketNotOpen', 'ActionOutOfOrder', 'FinalizeEarly'],
  },
}

const rulesOf = (kind: ActionKind): ActionRules<SignableAction> => RULES[kind] as ActionRules<SignableAction>

/**
 * The action without its report proof, if the preceding action used the same report: the contract does not verify a
 * report twice. A proof byte costs up to 176 gas on chains 4326 and 6343.
 */
export function withoutRepeatedProof(
  action: SignableAction,
  previous: Pick<OracleReport, 'price' | 'observedAt'> | null,
): SignableAction {
  // A finalization uses another feed.
  if (previous === null || action.kind === 'finalize_market') return action
  const report = action.kind === 'settle_part' ? action.part.oracle : action.report
  if (report.price !== previous.price || report.observedAt !== previous.observedAt) return action
  const bare: OracleReport = { ...report, signatures: '0x' }
  return action.kind === 'settle_part'
    ? { ...action, part: { ...action.part, oracle: bare } }
    : { ...action, report: bare }
}

/** The call that executes the action with this id. A part contains its own id. */
export const callOf = (action: SignableAction, actionId: number, spec: MarketSpec): ContractCall =>
  rulesOf(action.kind).call(action, actionId, spec)

/** Expected receipt of a single action. */
export const expectationOf = (action: SingleAction, actionId: number | null): Expectation =>
  (RULES[action.kind] as SingleRules<SingleAction>).expectation(action, actionId)

/** The operator's response to a reverted action. */
export interface FailureResponse {
  /**
   * `retry`: sign this and later actions again. `drop`: end this action, sign later actions again. `void`: end this
   * batch and all later actions, and the orders of the named culprit.
   */
  readonly does: 'retry' | 'drop' | 'void'
  readonly isExpected: boolean
}

/** `error`: name of the contract error; null if no transaction of the action was mined in time. */
export function responseTo(kind: ActionKind, error: string | null): FailureResponse {
  const isExpected = error === null || rulesOf(kind).expectedErrors.includes(error)
  if (error === 'AsOfAhead') return { does: 'retry', isExpected: true }
  return { does: kind === 'settle_part' ? 'void' : 'drop', isExpected }
}

const reportArgument = ({ price, observedAt, signatures }: OracleReport) => ({
  price,
  observedAt,
  proof: signatures,
})

/** The contract does not read the report of a market without a session. */
const sessionArgument = (session: SessionReport | null) =>
  session === null
    ? { price: 0n, observedAt: 0, proof: '0x' }
    : { price: BigInt(session.endsAt), observedAt: session.observedAt, proof: session.signatures }
