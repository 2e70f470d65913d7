/**
 * Rebuilds positions and balances from the events of backstop, deleveraging and wind-down.
 * `settlement-replay` does the same for batches. Pure: inputs are not changed.
 */

import { invariant } from '../invariant.ts'
import type { MarketSpec } from '../market/market.ts'
import { FLAT, marginOf, type Position } from '../positions/position.ts'
import type { Address, FundingIndex, Millis, Price, Quote, Steps } from '../units.ts'
import { closeAtBankruptcy } from './deleverage.ts'
import { emptied, merge } from './liquidation.ts'
import { claimDue, deficitAt, type Haircut, valueAt } from './wind-down.ts'

// ---------------------------------------------------------------------- events

/** Terms of an executed action. */
export interface ActionTerms {
  readonly actionId: number
  readonly asOf: Millis
  readonly oraclePrice: Price
  readonly observedAt: Millis
  readonly fundingIndex: FundingIndex
}

export interface PositionInherited extends ActionTerms {
  readonly account: Address
  readonly backstop: Address
  /** Size of the account's whole position, which moved. */
  readonly size: Steps
  readonly entryNotional: Quote
  readonly margin: Quote
  /** Change of the backstop's free balance. */
  readonly freeDelta: Quote
}

/** Values in the order of the contract's enum, after its first value `none`. */
export const INHERITANCE_FAILURES = ['NO_BACKSTOP', 'CAP_EXCEEDED', 'FREE_BALANCE_SHORT'] as const

export interface BackstopInheritanceFailed extends ActionTerms {
  readonly account: Address
  readonly backstop: Address
  readonly reason: (typeof INHERITANCE_FAILURES)[number]
  /** Wei of notional, or wei of free balance. */
  readonly needed: Quote
  readonly available: Quote
}

export interface DeleveragedLeg {
  readonly counterparty: Address
  /** 0 if the counterparty did not qualify. */
  readonly steps: Steps
  readonly payout: Quote
}

export interface PositionsDeleveraged extends ActionTerms {
  readonly account: Address
  /** Legs in closing order. */
  readonly legs: readonly DeleveragedLeg[]
}

/** The market has ended: it was finalized at its final price, or frozen. */
export interface MarketEnded {
  readonly actionId: number
  readonly how: 'frozen' | 'finalized'
  readonly asOf: Millis
  readonly price: Price
  readonly observedAt: Millis
  readonly fundingIndex: FundingIndex
  readonly pool: Quote
}

export interface InsolvencyReported {
  readonly account: Address
  readonly deficit: Quote
}

export interface Claimed {
  readonly account: Address
  readonly value: Quote
  readonly paid: Quote
  readonly unpaid: Quote
}

// ---------------------------------------------------------------------- effects

export interface PositionEffect {
  readonly positions: ReadonlyMap<Address, Position>
  /** Changes of free balances; the market's pool changes by the opposite amount. */
  readonly free: readonly { readonly account: Address; readonly delta: Quote }[]
}

type Positions = ReadonlyMap<Address, Position>

/** Merges the account's position into the backstop's position. */
export function applyInherited(positions: Positions, event: PositionInherited): PositionEffect {
  const { account, backstop, fundingIndex, freeDelta } = event
  const position = positions.get(account) ?? FLAT
  invariant(
    position.size === event.size &&
      position.entryNotional === event.entryNotional &&
      marginOf(position, fundingIndex) === event.margin,
    'the event matches the position that the account had',
  )
  const merged = merge(positions.get(backstop) ?? FLAT, position, fundingIndex)
  const after = { ...merged, foldedMargin: (merged.foldedMargin - freeDelta) as Quote }
  return {
    positions: new Map([
      [account, emptied(position)],
      [backstop, after],
    ]),
    free: freeDelta === 0n ? [] : [{ account: backstop, delta: freeDelta }],
  }
}

/** Closes the account's position against its counterparties, leg by leg. */
export function applyDeleveraged(positions: Positions, event: PositionsDeleveraged): PositionEffect {
  const { account, fundingIndex } = event
  const changed = new Map<Address, Position>()
  const free: { account: Address; delta: Quote }[] = []
  let position = positions.get(account) ?? FLAT
  for (const { counterparty, steps, payout } of event.legs) {
    if (steps === 0) continue
    const leg = closeAtBankruptcy(position, positions.get(counterparty) ?? FLAT, steps, fundingIndex)
    invariant(leg !== null && leg.payout === payout, 'the event matches the payout by the rules')
    position = leg.position
    changed.set(counterparty, leg.counterparty)
    free.push({ account: counterparty, delta: payout })
  }
  return { positions: changed.set(account, position), free }
}

/** Records the account's deficit and empties its position. */
export function applyInsolvency(
  positions: Positions,
  { account, deficit }: InsolvencyReported,
  ended: MarketEnded,
  spec: MarketSpec,
): PositionEffect {
  const position = positions.get(account) ?? FLAT
  const owed = deficitAt(spec, position, ended.fundingIndex, ended.price)
  invariant(owed === deficit, 'the event matches the deficit by the rules')
  return { positions: new Map([[account, emptied(position)]]), free: [] }
}

/**
 * Adds the claim (value × haircut) to the pool's debt to the account, and credits as much as the pool can pay.
 */
export function applyClaimed(
  positions: Positions,
  { account, value, paid, unpaid }: Claimed,
  end: { readonly ended: MarketEnded; readonly haircut: Haircut; readonly unpaidBefore: Quote },
  spec: MarketSpec,
): PositionEffect {
  const position = positions.get(account) ?? FLAT
  const worth = valueAt(spec, position, end.ended.fundingIndex, end.ended.price)
  invariant(value === (worth > 0n ? worth : 0n), 'the event matches the value by the rules')
  const due = end.unpaidBefore + claimDue(value, end.haircut)
  invariant(paid + unpaid === due, 'paid and unpaid add up to the amount due')
  return {
    positions: value === 0n ? new Map() : new Map([[account, emptied(position)]]),
    free: paid === 0n ? [] : [{ account, delta: paid }],
  }
}
