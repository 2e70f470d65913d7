/** Deleveragings that a market's contract accepts, found with the twins of its rules, and what they do to positions. */
import type { Deleverage } from '../../domain/actions/action.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import { FLAT, type Position } from '../../domain/positions/position.ts'
import {
  closeAgainst,
  compareRanks,
  isDeleverageable,
  type Ranked,
  scoreOf,
} from '../../domain/risk/deleverage.ts'
import { emptied, inherit } from '../../domain/risk/liquidation.ts'
import type { Address, FundingIndex, Price, Quote, Steps } from '../../domain/units.ts'

export type Positions = ReadonlyMap<Address, Position>

export interface DeleverageTerms {
  readonly spec: MarketSpec
  readonly index: FundingIndex
  readonly oracle: Price
  /** Null if the market has no backstop; 'unknown' if only an account without equity may be deleveraged whatever the backstop has. */
  readonly backstop: null | 'unknown'
}

/** How an operator chooses counterparties: for each one in its rank, again from the first at the end, quarters of the position to close. */
export type Shares = readonly number[]

const QUARTERS = 4

/** The contract checks the backstop's cap. */
const UNBOUNDED = (1n << 100n) as Quote

const isLegal = ({ spec, index, oracle, backstop }: DeleverageTerms, position: Position): boolean =>
  isDeleverageable(spec, position, backstop === null ? null : 'itself', index, oracle)

/** Counterparties of the account that qualify, in the order that the contract requires. */
function ranked({ spec, index, oracle }: DeleverageTerms, positions: Positions, account: Address): Ranked[] {
  const { size } = positions.get(account) ?? FLAT
  return [...positions]
    .filter(([, other]) => other.size * size < 0)
    .flatMap(([counterparty, other]) => {
      const score = scoreOf(spec, other, index, oracle)
      return score === null ? [] : [{ account: counterparty, score }]
    })
    .sort(compareRanks)
}

/** The legs close exactly their steps: the indexer reports a leg that closes less as a mismatch, which closes the market. */
function legsOf(terms: DeleverageTerms, positions: Positions, account: Address, shares: Shares) {
  const { spec, index, oracle } = terms
  const whole = Math.abs((positions.get(account) ?? FLAT).size)
  const legs: { counterparty: Address; steps: Steps }[] = []
  let position = positions.get(account) ?? FLAT
  for (const [at, { account: counterparty }] of ranked(terms, positions, account).entries()) {
    const wanted = Math.ceil((whole * (shares[at % shares.length] ?? 0)) / QUARTERS) as Steps
    const other = positions.get(counterparty) ?? FLAT
    const leg = wanted === 0 ? null : closeAgainst(spec, position, other, wanted, index, oracle)
    if (leg === null) continue
    position = leg.position
    legs.push({ counterparty, steps: leg.steps })
  }
  return legs
}

/** Account and legs of a deleveraging; null if the contract would accept none, or if the shares leave all counterparties out. */
export function legalDeleveraging(
  terms: DeleverageTerms,
  positions: Positions,
  shares: Shares,
): Pick<Deleverage, 'account' | 'legs'> | null {
  for (const [account, position] of positions) {
    const legs = isLegal(terms, position) ? legsOf(terms, positions, account, shares) : []
    if (legs.length > 0) return { account, legs }
  }
  return null
}

/** The positions after the legs that move anything, and what each of them pays its counterparty. */
export function deleveraged(
  { spec, index, oracle }: Omit<DeleverageTerms, 'backstop'>,
  positions: Positions,
  { account, legs }: Pick<Deleverage, 'account' | 'legs'>,
): { readonly positions: Positions; readonly payouts: ReadonlyMap<Address, bigint> } {
  const after = new Map<Address, Position>()
  const payouts = new Map<Address, bigint>()
  let position = positions.get(account) ?? FLAT
  for (const { counterparty, steps } of legs) {
    const other = positions.get(counterparty) ?? FLAT
    const leg = closeAgainst(spec, position, other, steps, index, oracle)
    if (leg === null) continue
    position = leg.position
    after.set(counterparty, leg.counterparty)
    payouts.set(counterparty, leg.payout)
  }
  return { positions: after.set(account, position), payouts }
}

export type InheritTerms = Omit<DeleverageTerms, 'backstop'>

/** The positions after the backstop has inherited that of the account, and what its free balance changes by. `free`: before. */
export function inherited(
  { spec, index, oracle }: InheritTerms,
  positions: Positions,
  {
    account,
    backstop,
    free,
  }: { readonly account: Address; readonly backstop: Address; readonly free: bigint },
): { readonly positions: Positions; readonly payouts: ReadonlyMap<Address, bigint> } {
  const position = positions.get(account) ?? FLAT
  const state = { position: positions.get(backstop) ?? FLAT, cap: UNBOUNDED, free: free as Quote }
  const verdict = inherit(spec, position, state, index, oracle)
  if (!verdict.ok) throw new Error(`the backstop cannot inherit: ${verdict.refusal.code}`)
  return {
    positions: new Map([
      [account, emptied(position)],
      [backstop, verdict.value.position],
    ]),
    payouts: new Map([[backstop, verdict.value.freeDelta]]),
  }
}
