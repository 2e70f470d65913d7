/** Logs of backstop, deleveraging and the end of a market to facts. Pure. */
import type { LogDescription, Result } from 'ethers'
import type { MarketSpec } from '../../domain/market/market.ts'
import { type ActionTerms, INHERITANCE_FAILURES, type MarketEnded } from '../../domain/risk/risk-replay.ts'
import type { Address, FundingIndex, Millis, Price, Quote, Steps } from '../../domain/units.ts'
import type { IgnoredEvent, RiskFact } from './facts.ts'

const addressOf = (value: unknown): Address => String(value).toLowerCase() as Address
const stepsOf = (value: bigint): Steps => Number(value) as Steps
const millisOf = (value: bigint): Millis => Number(value) as Millis

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
  if (reason === undefined) throw new Error(`no meaning is known of inheritance failure ${value}`)
  return reason
}

type Decoder = (args: Result, spec: MarketSpec) => RiskFact

const DECODERS: Readonly<Record<string, Decoder>> = {
  PositionInherited: (args, spec) => ({
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
  BackstopInheritanceFailed: (args, spec) => ({
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
  PositionsDeleveraged: (args, spec) => ({
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
  MarketFrozen: (args, spec) => ({ kind: 'market_ended', spec, event: endOf('frozen', args) }),
  MarketFinalized: (args, spec) => ({ kind: 'market_ended', spec, event: endOf('finalized', args) }),
  InsolvencyReported: ({ account, deficit }, spec) => ({
    kind: 'insolvency_reported',
    spec,
    event: { account: addressOf(account), deficit },
  }),
  HaircutFixed: ({ pool, owed }, spec) => ({ kind: 'haircut_fixed', spec, haircut: { pool, owed } }),
  // Paid out of what was deposited for the market itself.
  DeficitCovered: ({ amount }, spec) => ({ kind: 'deficit_covered', spec, payer: spec.trader, amount }),
  Claimed: ({ account, value, paid, unpaid }, spec) => ({
    kind: 'claimed',
    spec,
    event: { account: addressOf(account), value, paid, unpaid },
  }),
}

/** Events of these groups that change nothing that is kept here. */
const IGNORED = ['Heartbeat', 'FreezeRequested', 'PricePoked', 'BackstopChanged']

/** Null where the event is of another kind. */
export function decodeRisk({ name, args }: LogDescription, spec: MarketSpec): RiskFact | IgnoredEvent | null {
  if (IGNORED.includes(name)) return { kind: 'ignored', event: name }
  return DECODERS[name]?.(args, spec) ?? null
}
