/** Events of IsolatedTrader, one contract per market: settled parts, cancelled salts, adjustments, funding, backstop, deleveraging and wind-down. */
import type { Result } from 'ethers'
import type { IgnoredEvent, MarketFact, TraderFact } from '../../../domain/chain/facts.ts'
import type { ModeChange } from '../../../domain/market/changes.ts'
import type { MarketSpec } from '../../../domain/market/market.ts'
import type { PositionAdjusted } from '../../../domain/positions/adjustment-replay.ts'
import { type ActionTerms, INHERITANCE_FAILURES, type MarketEnded } from '../../../domain/risk/risk-replay.ts'
import { decodeBatchSettled } from '../../../domain/settlement/settlement-codec.ts'
import type { FundingIndex, HourlyFunding, Price, Quote } from '../../../domain/units.ts'
import { IsolatedTrader__factory } from '../../../typechain-types/factories/IsolatedTrader__factory.ts'
import type { IsolatedTraderInterface } from '../../../typechain-types/IsolatedTrader.ts'
import {
  addressOf,
  decodeEvent,
  type EventTable,
  IGNORED,
  type LogData,
  millisOf,
  stepsOf,
} from './event-table.ts'
import { modeOf, parametersOf } from './parameters.ts'

const TRADER = IsolatedTrader__factory.createInterface()

const termsOf = ({ actionId, terms }: Result): ActionTerms => ({
  actionId: Number(actionId),
  asOf: millisOf(terms.asOf),
  oraclePrice: terms.oraclePrice as Price,
  observedAt: millisOf(terms.observedAt),
  fundingIndex: terms.fundingIndex as FundingIndex,
})

const endOf = (how: MarketEnded['how'], args: Result): MarketEnded => ({
  how,
  actionId: Number(args.actionId),
  asOf: millisOf(args.asOf),
  price: args.price as Price,
  observedAt: millisOf(args.observedAt),
  fundingIndex: args.fundingIndex as FundingIndex,
  pool: args.pool as Quote,
})

const failureOf = (value: bigint): (typeof INHERITANCE_FAILURES)[number] => {
  const reason = INHERITANCE_FAILURES[Number(value) - 1]
  if (reason === undefined) {
    throw new Error(`inheritance failure ${value} is unknown; valid are 1 to ${INHERITANCE_FAILURES.length}`)
  }
  return reason
}

const adjustedOf = (args: Result, leverage: number | null): PositionAdjusted => ({
  account: addressOf(args.account),
  signer: addressOf(args.signer),
  nonce: args.nonce,
  asOf: millisOf(args.asOf),
  amount: args.amount as Quote,
  foldedMargin: args.foldedMargin as Quote,
  leverage,
})

const modeChangeOf = ({ mode, activeFrom }: Result): ModeChange => ({
  mode: modeOf(mode),
  activeFrom: millisOf(activeFrom),
})

const EVENTS: EventTable<IsolatedTraderInterface, TraderFact, MarketFact> = {
  BatchSettled: {
    raw: ({ spec }, { topics, data }) => ({
      kind: 'part_mined',
      spec,
      settled: decodeBatchSettled(topics, data, spec),
    }),
  },
  SaltsCancelled: ({ maker, salts }, { spec }) => ({
    kind: 'salts_cancelled',
    spec,
    maker: addressOf(maker),
    salts: [...salts],
  }),
  SaltsCancelledBelow: ({ maker, floor }, { spec }) => ({
    kind: 'salts_cancelled',
    spec,
    maker: addressOf(maker),
    salts: { below: floor },
  }),
  MarginAdjusted: (args, { spec }) => ({ kind: 'position_adjusted', spec, event: adjustedOf(args, null) }),
  LeverageAdjusted: (args, { spec }) => ({
    kind: 'position_adjusted',
    spec,
    event: adjustedOf(args, Number(args.leverage)),
  }),
  FundingUpdated: (args, { spec }) => ({
    kind: 'funding_updated',
    spec,
    event: {
      actionId: Number(args.actionId),
      rate: args.rate as HourlyFunding,
      validFrom: millisOf(args.asOf),
      validUntil: millisOf(args.validUntil),
      fundingIndex: args.fundingIndex as FundingIndex,
      oraclePrice: args.oraclePrice as Price,
      observedAt: millisOf(args.observedAt),
    },
  }),
  PositionInherited: (args, { spec }) => ({
    kind: 'position_inherited',
    spec,
    event: {
      ...termsOf(args),
      account: addressOf(args.account),
      backstop: addressOf(args.backstop),
      size: stepsOf(args.size),
      entryNotional: args.entryNotional,
      margin: args.margin,
      freeDelta: args.freeDelta,
    },
  }),
  BackstopInheritanceFailed: (args, { spec }) => ({
    kind: 'inheritance_failed',
    spec,
    event: {
      ...termsOf(args),
      account: addressOf(args.account),
      backstop: addressOf(args.backstop),
      reason: failureOf(args.reason),
      needed: args.needed,
      available: args.available,
    },
  }),
  PositionsDeleveraged: (args, { spec }) => ({
    kind: 'positions_deleveraged',
    spec,
    event: {
      ...termsOf(args),
      account: addressOf(args.account),
      legs: [...args.legs].map((leg: Result) => ({
        counterparty: addressOf(leg.counterparty),
        steps: stepsOf(leg.steps),
        payout: leg.payout,
      })),
    },
  }),
  MarketFrozen: (args, { spec }) => ({ kind: 'market_ended', spec, event: endOf('frozen', args) }),
  MarketFinalized: (args, { spec }) => ({ kind: 'market_ended', spec, event: endOf('finalized', args) }),
  InsolvencyReported: ({ account, deficit }, { spec }) => ({
    kind: 'insolvency_reported',
    spec,
    event: { account: addressOf(account), deficit },
  }),
  HaircutFixed: ({ pool, owed }, { spec }) => ({ kind: 'haircut_fixed', spec, haircut: { pool, owed } }),
  // The market contract is the payer: its own free balance at the bank is debited.
  DeficitCovered: ({ amount }, { spec }) => ({ kind: 'deficit_covered', spec, payer: spec.trader, amount }),
  Claimed: ({ account, value, paid, unpaid }, { spec }) => ({
    kind: 'claimed',
    spec,
    event: { account: addressOf(account), value, paid, unpaid },
  }),
  MarketCreated: IGNORED,
  ParametersChanged: ({ actionId, parameters }, { spec }) => ({
    ...{ kind: 'terms_changed', spec, times: null },
    event: {
      ...{ kind: 'changes_applied', actionId: Number(actionId) },
      ...{ parameters: parametersOf(parameters), mode: modeOf(parameters.mode) },
    },
  }),
  ParametersScheduled: ({ parameters, activeFrom }, { spec }) => ({
    ...{ kind: 'terms_changed', spec, times: null },
    event: {
      kind: 'parameters_scheduled',
      change: { parameters: parametersOf(parameters), activeFrom: millisOf(activeFrom) },
    },
  }),
  ScheduledParametersCancelled: (_, { spec }) => ({
    ...{ kind: 'terms_changed', spec, times: null, event: { kind: 'schedule_cancelled' } },
  }),
  // For the mode `settling`, the scheduled time is the market's close. Scheduling another mode removes it.
  ModeScheduled: (args, { spec }) => {
    const change = modeChangeOf(args)
    const times = { settling_at: change.mode === 'settling' ? change.activeFrom : 0 }
    return { kind: 'terms_changed', spec, event: { kind: 'mode_scheduled', change }, times }
  },
  ModeRestricted: (args, { spec }) => ({
    ...{ kind: 'terms_changed', spec, times: null },
    event: { kind: 'mode_restricted', change: modeChangeOf(args) },
  }),
  ExpiryExtended: ({ expiresAt }, { spec }) => ({
    kind: 'ending_changed',
    spec,
    times: { expires_at: Number(expiresAt) },
  }),
  DisputeWindowExtended: ({ disputeWindow }, { spec }) => ({
    kind: 'ending_changed',
    spec,
    times: { dispute_window: Number(disputeWindow) },
  }),
  FinalPriceReported: ({ price, observedAt }, { spec }) => ({
    kind: 'ending_changed',
    spec,
    times: {},
    report: { price, observedAt: millisOf(observedAt) },
  }),
  OperatorChanged: IGNORED,
  BackstopChanged: ({ backstop, cap }, { spec }) => ({
    ...{ kind: 'terms_changed', spec, times: null },
    event: {
      ...{ kind: 'backstop_changed', cap },
      backstop: BigInt(backstop) === 0n ? null : addressOf(backstop),
    },
  }),
  EIP712DomainChanged: IGNORED,
  AuthorityUpdated: IGNORED,
  Heartbeat: IGNORED,
  FreezeRequested: IGNORED,
  PricePoked: IGNORED,
  MarginNoncesInvalidated: ({ account, newMinimum }, { spec }) => ({
    kind: 'margin_nonces_invalidated',
    spec,
    account: addressOf(account),
    minimum: newMinimum,
  }),
}

export const decodeTraderLog = (log: LogData, spec: MarketSpec): TraderFact | IgnoredEvent =>
  decodeEvent(TRADER, EVENTS, log, { spec })
