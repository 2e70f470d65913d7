/**
 * What becomes of a position below its maintenance requirement that the book did not take: a backstop account inherits it as
 * it stands. Twin of LiquidationLib.
 */

import type { MarketSpec } from '../market/market.ts'
import { type Exposure, exposureOf, isBelow } from '../positions/margin.ts'
import { closedShare, FLAT, foldMargin, marginOf, type Position } from '../positions/position.ts'
import { abs, divCeil, type FundingIndex, maxOf, ONE, type Price, type Quote, type Steps } from '../units.ts'
import { accept, refuse, type Verdict } from '../verdict.ts'

/** Ratio below MMR: the chain lets the backstop inherit the position. */
export const isInheritable = (
  spec: MarketSpec,
  position: Position,
  index: FundingIndex,
  oracle: Price,
): boolean => isBelow(spec, position, index, oracle, spec.mmr)

/** A position that is gone. The account stays one that has been seen. */
export const emptied = ({ leverage }: Position): Position => ({ ...FLAT, leverage })

interface Netted {
  readonly entryNotional: bigint
  /** Of the closed shares: what the short side's entry brings less what the long side's took. */
  readonly realised: bigint
}

/** Opposite sides: the smaller one is closed against as much of the larger, at no price: only entries meet. */
function net(larger: Position, smaller: Position): Netted {
  const closed = Math.abs(smaller.size) as Steps
  const { entry } = closedShare(larger, 0n as Quote, closed)
  const [long, short] = larger.size > 0 ? [entry, smaller.entryNotional] : [smaller.entryNotional, entry]
  return { entryNotional: larger.entryNotional - entry, realised: short - long }
}

/**
 * Two positions as one: worth, at every price, exactly what they were worth apart. Sides that agree add up. Sides that oppose
 * net: the closed shares' entries become margin, the rest's entry rounds for the rest as in a partial close. A result without
 * size may hold margin of either sign, which is the caller's to settle. Leverage is `held`'s, or the other's where it has none.
 */
export function merge(held: Position, added: Position, index: FundingIndex): Position {
  const size = (held.size + added.size) as Steps
  const opposed = held.size * added.size < 0
  const [larger, smaller] = abs(BigInt(held.size)) >= abs(BigInt(added.size)) ? [held, added] : [added, held]
  const { entryNotional, realised } = opposed
    ? net(larger, smaller)
    : { entryNotional: held.entryNotional + added.entryNotional, realised: 0n }
  const margin = marginOf(held, index) + marginOf(added, index) + realised
  return {
    size,
    entryNotional: entryNotional as Quote,
    foldedMargin: foldMargin(margin, size, index),
    leverage: held.leverage === 0 ? added.leverage : held.leverage,
  }
}

/** Wei that bring the position to IMR at the oracle price, up; 0 where it is there. */
export const marginShortfall = (spec: MarketSpec, { equity, notional }: Exposure): Quote =>
  maxOf(divCeil(notional * spec.imr - equity * ONE, ONE * ONE), 0n) as Quote

/** What the market's backstop may hold, and what it has. */
export interface Backstop {
  readonly position: Position
  /** Highest notional at the oracle price; 0 where the market has no backstop. */
  readonly cap: Quote
  /** Its free balance. */
  readonly free: Quote
}

export interface Inheritance {
  /** The backstop's, after it. The account's is `emptied`. */
  readonly position: Position
  /** Change of the backstop's free balance: less what the position lacks to IMR, or what is left where nothing is held. */
  readonly freeDelta: Quote
}

export type InheritanceFailure =
  | { readonly code: 'NO_BACKSTOP' }
  /** In wei of notional, up. A position that shrinks always fits. */
  | { readonly code: 'CAP_EXCEEDED'; readonly needed: Quote; readonly available: Quote }
  | { readonly code: 'FREE_BALANCE_SHORT'; readonly needed: Quote; readonly available: Quote }

/** The position as the backstop would hold it. Presupposes `isInheritable`; moves everything or nothing. */
export function inherit(
  spec: MarketSpec,
  position: Position,
  backstop: Backstop | null,
  index: FundingIndex,
  oracle: Price,
): Verdict<Inheritance, InheritanceFailure> {
  if (backstop === null) return refuse({ code: 'NO_BACKSTOP' })
  const { cap, free } = backstop
  const merged = merge(backstop.position, position, index)
  const exposure = exposureOf(spec, merged, index, oracle)
  const hasGrown = Math.abs(merged.size) > Math.abs(backstop.position.size)
  const needed = divCeil(exposure.notional, ONE) as Quote
  if (hasGrown && needed > cap) return refuse({ code: 'CAP_EXCEEDED', needed, available: cap })

  const isFlat = merged.size === 0
  const freeDelta = isFlat ? marginOf(merged, index) : (-marginShortfall(spec, exposure) as Quote)
  if (free + freeDelta < 0n)
    return refuse({ code: 'FREE_BALANCE_SHORT', needed: -freeDelta as Quote, available: free })
  return accept({
    position: { ...merged, foldedMargin: (merged.foldedMargin - freeDelta) as Quote },
    freeDelta,
  })
}
