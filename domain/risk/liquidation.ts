/**
 * Rules of the backstop: it inherits, unchanged, a position below MMR that the book did not take.
 * Twin of the contract's BackstopLib.
 */

import type { MarketSpec } from '../market/market.ts'
import { type Exposure, exposureOf, isBelow } from '../positions/margin.ts'
import { closedShare, FLAT, foldMargin, marginOf, type Position } from '../positions/position.ts'
import { abs, divCeil, type FundingIndex, maxOf, ONE, type Price, type Quote, type Steps } from '../units.ts'
import { accept, refuse, type Verdict } from '../verdict.ts'

/** Ratio below MMR: the contract lets the backstop inherit the position. */
export const isInheritable = (
  spec: MarketSpec,
  position: Position,
  index: FundingIndex,
  oracle: Price,
): boolean => isBelow(spec, position, index, oracle, spec.mmr)

/**
 * An account's position after its transfer. The leverage stays, because 0 marks an account without history.
 */
export const emptied = ({ leverage }: Position): Position => ({ ...FLAT, leverage })

interface Netted {
  readonly entryNotional: bigint
  /** Result of the closed shares in wei: entry of the short side less entry of the long side. */
  readonly realised: bigint
}

/**
 * Nets opposite positions: the smaller position closes against equal steps of the larger.
 * No price is involved; only entry notionals are netted.
 */
function net(larger: Position, smaller: Position): Netted {
  const closed = Math.abs(smaller.size) as Steps
  const { entry } = closedShare(larger, 0n as Quote, closed)
  const [long, short] = larger.size > 0 ? [entry, smaller.entryNotional] : [smaller.entryNotional, entry]
  return { entryNotional: larger.entryNotional - entry, realised: short - long }
}

/**
 * Merges two positions into one of equal total value at every price. Opposite positions net. A result without size may
 * have margin of either sign; the caller settles it.
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

/** Wei missing to IMR at the oracle price, rounded up; 0 if the position meets IMR. */
export const marginShortfall = (spec: MarketSpec, { equity, notional }: Exposure): Quote =>
  maxOf(divCeil(notional * spec.imr - equity * ONE, ONE * ONE), 0n) as Quote

/** The backstop's position, and the limits of an inheritance. */
export interface Backstop {
  readonly position: Position
  /** Highest notional in wei at the oracle price; 0 if the market has no backstop. */
  readonly cap: Quote
  /** The backstop's free balance. */
  readonly free: Quote
}

export interface Inheritance {
  /** The backstop's position after the inheritance. The account's position is `emptied`. */
  readonly position: Position
  /**
   * Change of the backstop's free balance: minus the margin missing to IMR; for a flat result, plus its
   * margin.
   */
  readonly freeDelta: Quote
}

export type InheritanceFailure =
  | { readonly code: 'NO_BACKSTOP' }
  /**
   * Wei of notional, rounded up. An inheritance that does not enlarge the backstop's position is never
   * refused for its cap.
   */
  | { readonly code: 'CAP_EXCEEDED'; readonly needed: Quote; readonly available: Quote }
  | { readonly code: 'FREE_BALANCE_SHORT'; readonly needed: Quote; readonly available: Quote }

/** The backstop's position after it inherits the whole position. Requires `isInheritable`. */
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
