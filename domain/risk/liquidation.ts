/**
 * Rules of the backstop: it inherits a position below MMR that the book did not take, as it is. Twin of the
 * contract's BackstopLib.
 */

import type { MarketSpec } from '../market/market.ts'
import { type Exposure, exposureOf, isBelow } from '../positions/margin.ts'
import { closedShare, FLAT, foldMargin, marginOf, type Position } from '../positions/position.ts'
import { abs, divCeil, type FundingIndex, maxOf, ONE, type Price, type Quote, type Steps } from '../units.ts'
import { accept, refuse, type Verdict } from '../verdict.ts'

/** Ratio below MMR: the contract allows the backstop to inherit the position. */
export const isInheritable = (
  spec: MarketSpec,
  position: Position,
  index: FundingIndex,
  oracle: Price,
): boolean => isBelow(spec, position, index, oracle, spec.mmr)

/**
 * The position of an account after all of it was transferred. The leverage stays, because 0 marks an account
 * without any history.
 */
export const emptied = ({ leverage }: Position): Position => ({ ...FLAT, leverage })

interface Netted {
  readonly entryNotional: bigint
  /** Result of the closed shares in wei: entry of the short side less entry of the long side. */
  readonly realised: bigint
}

/**
 * Nets opposite positions: the smaller one closes against as many steps of the larger. No price is involved;
 * only entry notionals are netted.
 */
function net(larger: Position, smaller: Position): Netted {
  const closed = Math.abs(smaller.size) as Steps
  const { entry } = closedShare(larger, 0n as Quote, closed)
  const [long, short] = larger.size > 0 ? [entry, smaller.entryNotional] : [smaller.entryNotional, entry]
  return { entryNotional: larger.entryNotional - entry, realised: short - long }
}

/**
 * Merges two positions into one that is worth, at every price, exactly their sum. Equal sides add up.
 * Opposite sides net: the closed shares' entries become margin, and the rest's entry rounds in favour of the
 * rest, as in a partial close. A result without size may have margin of either sign; the caller settles it.
 * The leverage is that of `held`, or of `added` if `held` has none.
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

/** Wei that are missing to IMR at the oracle price, rounded up; 0 if none. */
export const marginShortfall = (spec: MarketSpec, { equity, notional }: Exposure): Quote =>
  maxOf(divCeil(notional * spec.imr - equity * ONE, ONE * ONE), 0n) as Quote

/** The backstop's position, and the limits of what it may inherit. */
export interface Backstop {
  readonly position: Position
  /** Highest notional in wei at the oracle price; 0 if the market has no backstop. */
  readonly cap: Quote
  /** The backstop's free balance. */
  readonly free: Quote
}

export interface Inheritance {
  /** The backstop's position afterwards. That of the account is `emptied`. */
  readonly position: Position
  /**
   * Change of the backstop's free balance: minus the margin missing to IMR; or, if the merged position is
   * flat, its margin.
   */
  readonly freeDelta: Quote
}

export type InheritanceFailure =
  | { readonly code: 'NO_BACKSTOP' }
  /** In wei of notional, rounded up. A backstop position that does not grow is never refused for this. */
  | { readonly code: 'CAP_EXCEEDED'; readonly needed: Quote; readonly available: Quote }
  | { readonly code: 'FREE_BALANCE_SHORT'; readonly needed: Quote; readonly available: Quote }

/**
 * The position as the backstop would have it. Requires `isInheritable`. All of the position moves, or none.
 */
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
