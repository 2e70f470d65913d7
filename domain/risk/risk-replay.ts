/**
 * What backstop, deleveraging and the end of a market did, rebuilt from their logs alone, like `settlement-replay` does it for
 * batches. Pure; nothing is changed in place.
 */

import { invariant } from '../invariant.ts'
import type { MarketSpec } from '../market/market.ts'
import { FLAT, marginOf, type Position } from '../positions/position.ts'
import type { Address, FundingIndex, Millis, Price, Quote, Steps } from '../units.ts'
import { closeAtBankruptcy } from './deleverage.ts'
import { emptied, merge } from './liquidation.ts'
import { claimDue, deficitAt, type Haircut, valueAt } from './wind-down.ts'

// ---------------------------------------------------------------------- events

/** What an action was done at. */
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
  /** What the account held, all of which moved. */
  readonly size: Steps
  readonly entryNotional: Quote
  readonly margin: Quote
  /** Change of the backstop's free balance. */
  readonly freeDelta: Quote
}

/** In the order of the contract's enum, which begins with none. */
export const INHERITANCE_FAILURES = ['NO_BACKSTOP', 'CAP_EXCEEDED', 'FREE_BALANCE_SHORT'] as const

export interface BackstopInheritanceFailed extends ActionTerms {
  readonly account: Address
  readonly backstop: Address
  readonly reason: (typeof INHERITANCE_FAILURES)[number]
  /** Wei of notional, or of free balance. */
  readonly needed: Quote
  readonly available: Quote
}

export interface DeleveragedLeg {
  readonly counterparty: Address
  /** 0 where it did not qualify. */
  readonly steps: Steps
  readonly payout: Quote
}

export interface PositionsDeleveraged extends ActionTerms {
  readonly account: Address
  /** In the order in which they were closed. */
  readonly legs: readonly DeleveragedLeg[]
}

/** The market has ended, at its final price or frozen. */
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
  /** Changes of free balances; the market's pool changes by the opposite. */
  readonly free: readonly { readonly account: Address; readonly delta: Quote }[]
}

type Positions = ReadonlyMap<Address, Position>

/** The backstop's position and the account's become one. */
export function applyInherited(positions: Positions, event: PositionInherited): PositionEffect {
  const { account, backstop, fundingIndex, freeDelta } = event
  const position = positions.get(account) ?? FLAT
  invariant(
    position.size === event.size &&
      position.entryNotional === event.entryNotional &&
      marginOf(position, fundingIndex) === event.margin,
    'the log repeats what the account held',
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

/** The account's position closes against the others, leg by leg. */
export function applyDeleveraged(positions: Positions, event: PositionsDeleveraged): PositionEffect {
  const { account, fundingIndex } = event
  const changed = new Map<Address, Position>()
  const free: { account: Address; delta: Quote }[] = []
  let position = positions.get(account) ?? FLAT
  for (const { counterparty, steps, payout } of event.legs) {
    if (steps === 0) continue
    const leg = closeAtBankruptcy(position, positions.get(counterparty) ?? FLAT, steps, fundingIndex)
    invariant(leg !== null && leg.payout === payout, 'the log repeats what the chain did')
    position = leg.position
    changed.set(counterparty, leg.counterparty)
    free.push({ account: counterparty, delta: payout })
  }
  return { positions: changed.set(account, position), free }
}

/** What the account owed is counted, and its position is gone. */
export function applyInsolvency(
  positions: Positions,
  { account, deficit }: InsolvencyReported,
  ended: MarketEnded,
  spec: MarketSpec,
): PositionEffect {
  const position = positions.get(account) ?? FLAT
  const owed = deficitAt(spec, position, ended.fundingIndex, ended.price)
  invariant(owed === deficit, 'the log repeats the deficit')
  return { positions: new Map([[account, emptied(position)]]), free: [] }
}

/** What the position was worth becomes a debt of the pool, as much of it as there was is paid. */
export function applyClaimed(
  positions: Positions,
  { account, value, paid, unpaid }: Claimed,
  end: { readonly ended: MarketEnded; readonly haircut: Haircut; readonly unpaidBefore: Quote },
  spec: MarketSpec,
): PositionEffect {
  const position = positions.get(account) ?? FLAT
  const worth = valueAt(spec, position, end.ended.fundingIndex, end.ended.price)
  invariant(value === (worth > 0n ? worth : 0n), 'the log repeats the value')
  const due = end.unpaidBefore + claimDue(value, end.haircut)
  invariant(paid + unpaid === due, 'what was due is paid or still owed')
  return {
    positions: value === 0n ? new Map() : new Map([[account, emptied(position)]]),
    free: paid === 0n ? [] : [{ account, delta: paid }],
  }
}
