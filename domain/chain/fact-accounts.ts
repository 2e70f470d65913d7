/** Accounts that a fact changes, and groups of facts that are applied alike. */
import type { Address } from '../units.ts'
import type {
  ChainFact,
  ClaimedFact,
  DeficitCoveredFact,
  FundingFact,
  InheritanceFailedFact,
  InsolvencyReportedFact,
  MarketEndedFact,
  PartMined,
  PositionAdjustedFact,
  PositionInheritedFact,
  PositionsDeleveragedFact,
} from './facts.ts'

/** Facts that change positions outside batches. */
export type PositionMoveFact =
  | PositionAdjustedFact
  | PositionInheritedFact
  | PositionsDeleveragedFact
  | InsolvencyReportedFact
  | ClaimedFact
  | DeficitCoveredFact

/** Facts of actions that move no position. */
export type SingleFact = FundingFact | InheritanceFailedFact | MarketEndedFact

const MOVING: ReadonlySet<string> = new Set<PositionMoveFact['kind']>([
  'position_adjusted',
  'position_inherited',
  'positions_deleveraged',
  'insolvency_reported',
  'claimed',
  'deficit_covered',
])

export const moves = (fact: ChainFact): fact is PositionMoveFact => MOVING.has(fact.kind)

export const isSingleFact = (fact: ChainFact): fact is SingleFact =>
  fact.kind === 'funding_updated' || fact.kind === 'inheritance_failed' || fact.kind === 'market_ended'

export const makersOf = ({ settled }: PartMined): Address[] => settled.fills.map(({ maker }) => maker)

export const closedLegs = ({ event }: PositionsDeleveragedFact) => event.legs.filter(({ steps }) => steps > 0)

/** Accounts with a changed position or free balance. */
export function movedAccounts(fact: PositionMoveFact): Address[] {
  switch (fact.kind) {
    case 'position_inherited':
      return [fact.event.account, fact.event.backstop]
    case 'positions_deleveraged':
      return [fact.event.account, ...closedLegs(fact).map(({ counterparty }) => counterparty)]
    case 'deficit_covered':
      return [fact.payer]
    default:
      return [fact.event.account]
  }
}

/** Accounts with a changed balance or position; each becomes a user. */
export function accountsOf(fact: ChainFact): Address[] {
  if (fact.kind === 'ledger_moved') return [fact.account]
  if (moves(fact)) return movedAccounts(fact)
  return fact.kind === 'part_mined' ? makersOf(fact) : []
}

/** Distinct accounts of the facts, in order. */
export const accountsOfAll = (facts: readonly { readonly fact: ChainFact }[]): Address[] => [
  ...new Set(facts.flatMap(({ fact }) => accountsOf(fact))),
]
