/**
 * An account's isolated position in one market, stored by the contract in one slot, and the effect of one
 * fill.
 */

import { invariant } from '../invariant.ts'
import { closingFee, type FeeRates, fillFee } from '../market/fees.ts'
import { type MarketSpec, notionalAt, priceOf } from '../market/market.ts'
import type { Side } from '../orders/order.ts'
import {
  abs,
  divCeil,
  divFloor,
  type FundingIndex,
  minOf,
  mulDivDown,
  mulDivUp,
  ONE,
  type Price,
  type Quote,
  type Steps,
  type Ticks,
} from '../units.ts'
import { accept, refuse, type Verdict } from '../verdict.ts'

export interface Position {
  /** Signed: long positive. */
  readonly size: Steps
  /** Wei: the sum of price × quantity over the open steps; never negative. */
  readonly entryNotional: Quote
  /**
   * Margin with funding folded in: margin = foldedMargin - size × fundingIndex at any later index. May be
   * negative.
   */
  readonly foldedMargin: Quote
  /**
   * Leverage of the last opening fill or leverage adjustment; 0 before the account's first in this market.
   */
  readonly leverage: number
}

export const FLAT: Position = {
  size: 0 as Steps,
  entryNotional: 0n as Quote,
  foldedMargin: 0n as Quote,
  leverage: 0,
}

/**
 * Bounds of the packed slot: size int64 (here a safe integer), entry notional uint92, folded margin int92.
 */
export const ENTRY_NOTIONAL_END = 1n << 92n
export const FOLDED_MARGIN_END = 1n << 91n

/** One order's share of a settlement part, in the form that `applyFill` applies to the position. */
export interface PositionFill {
  readonly side: Side
  /** Clearing price. */
  readonly price: Ticks
  /** All steps of the fill, above 0. The closing steps apply first; the rest grow or open the position. */
  readonly steps: Steps
  /** Steps that pay the taker rate; closing steps are charged first. */
  readonly takerSteps: Steps
  /** The order's leverage; it applies to the opening steps only. */
  readonly leverage: number
  /** Margin price of the opening steps; see `openingBasis`. */
  readonly basis: Price
}

/** Terms shared by every fill of a part. */
export interface FillTerms extends FeeRates {
  readonly fundingIndex: FundingIndex
}

export interface FillResult {
  readonly position: Position
  readonly closed: Steps
  readonly opened: Steps
  /** Margin released by the closing steps; negative if accrued funding exceeds it. */
  readonly released: Quote
  /** Profit or loss realised by the closing steps. */
  readonly realised: Quote
  /** Margin added with the opening steps. */
  readonly added: Quote
  /** Total fee of the fill, and the part that the closing steps paid. */
  readonly fee: Quote
  readonly closingFee: Quote
  /** Change of the account's free balance: released + realised - added - fee. */
  readonly freeDelta: Quote
}

export type FillRefusal =
  /** At this price the closing steps are worth less than zero, so the fill would leave bad debt. */
  | { readonly code: 'NEGATIVE_PROCEEDS'; readonly proceeds: Quote }
  /** The new position does not fit its storage slot. */
  | { readonly code: 'OUT_OF_RANGE'; readonly field: 'size' | 'entryNotional' | 'foldedMargin' }

/** Margin in wei with all funding up to `index` settled. Exact; may be negative. */
export const marginOf = (position: Position, index: FundingIndex): Quote =>
  (position.foldedMargin - BigInt(position.size) * index) as Quote

/** The stored form of `margin` on `size` at `index`; inverse of `marginOf`. */
export const foldMargin = (margin: bigint, size: Steps, index: FundingIndex): Quote =>
  (margin + BigInt(size) * index) as Quote

/**
 * The position's share of its market's pool, in wei: its equity at price 0 and index 0.
 * Position sizes in a market sum to zero, so the shares sum to the pool at every price and index.
 */
export const poolShare = ({ size, entryNotional, foldedMargin }: Position): Quote =>
  (size > 0 ? foldedMargin - entryNotional : foldedMargin + entryNotional) as Quote

export const signOf = (side: Side): 1 | -1 => (side === 'LONG' ? 1 : -1)

/** Steps of a fill on `side` that close the position; the remaining steps open. */
export const closingSteps = (size: Steps, side: Side, steps: Steps): Steps =>
  size * signOf(side) < 0 ? minOf(steps, Math.abs(size) as Steps) : (0 as Steps)

/**
 * Wei of margin per opening step at `basis` and `leverage`, rounded up per step, so that many fills never
 * exceed one reservation.
 */
export const marginPerStep = (spec: MarketSpec, basis: Price, leverage: number): Quote =>
  mulDivUp(basis, spec.step, ONE * BigInt(leverage)) as Quote

/**
 * Margin price of an opening share. A limit sell uses its signed `limit`, so that a fill above it adds profit, not
 * debit. Market orders have limit 0.
 */
export function openingBasis(
  spec: MarketSpec,
  order: { readonly side: Side; readonly limit: Ticks },
  clearing: Ticks,
  oracle: Price,
): Price {
  const price = priceOf(spec, clearing)
  if (order.side === 'LONG') return price
  if (spec.kind === 'binary_future') return (ONE - price) as Price
  return order.limit === 0 ? minOf(price, oracle) : priceOf(spec, order.limit)
}

/**
 * The closing steps' share of margin and entry notional in wei.
 * Margin rounds down. Entry rounds in favour of the remaining position: up for a long, down for a short.
 */
export function closedShare(
  position: Position,
  margin: Quote,
  closed: Steps,
): { released: bigint; entry: bigint } {
  const size = BigInt(Math.abs(position.size))
  const share = BigInt(closed)
  const entry = position.entryNotional
  return {
    released: divFloor(margin * share, size),
    entry: position.size > 0 ? mulDivUp(entry, share, size) : mulDivDown(entry, share, size),
  }
}

interface FillLeg {
  readonly position: Position
  readonly released: bigint
  readonly realised: bigint
  readonly added: bigint
  readonly fee: Quote
}

function close(
  spec: MarketSpec,
  position: Position,
  fill: PositionFill,
  closed: Steps,
  terms: FillTerms,
): Verdict<FillLeg, FillRefusal> {
  const margin = marginOf(position, terms.fundingIndex)
  const { released, entry } = closedShare(position, margin, closed)
  const value = notionalAt(spec, fill.price, closed)
  const realised = position.size > 0 ? value - entry : entry - value
  const proceeds = (released + realised) as Quote
  if (proceeds < 0n) return refuse({ code: 'NEGATIVE_PROCEEDS', proceeds })

  const taker = minOf(fill.takerSteps, closed)
  const due = fillFee(spec, fill.price, { taker, maker: (closed - taker) as Steps }, terms)
  const size = (position.size + signOf(fill.side) * closed) as Steps
  const rest: Position = {
    size,
    entryNotional: (position.entryNotional - entry) as Quote,
    foldedMargin: foldMargin(margin - released, size, terms.fundingIndex),
    leverage: position.leverage,
  }
  return accept({ position: rest, released, realised, added: 0n, fee: closingFee(due, proceeds) })
}

function grow(
  spec: MarketSpec,
  position: Position,
  fill: PositionFill,
  opened: Steps,
  terms: FillTerms,
): FillLeg {
  const added = marginPerStep(spec, fill.basis, fill.leverage) * BigInt(opened)
  const margin = marginOf(position, terms.fundingIndex) + added
  const size = (position.size + signOf(fill.side) * opened) as Steps
  const taker = Math.max(0, fill.takerSteps - (fill.steps - opened)) as Steps
  return {
    position: {
      size,
      entryNotional: (position.entryNotional + notionalAt(spec, fill.price, opened)) as Quote,
      foldedMargin: foldMargin(margin, size, terms.fundingIndex),
      leverage: fill.leverage,
    },
    released: 0n,
    realised: 0n,
    added,
    fee: fillFee(spec, fill.price, { taker, maker: (opened - taker) as Steps }, terms),
  }
}

/** Name of the first field that exceeds its bits in the storage slot, if any. */
export function outOfRangeField(position: Position): 'size' | 'entryNotional' | 'foldedMargin' | null {
  if (!Number.isSafeInteger(position.size)) return 'size'
  if (position.entryNotional >= ENTRY_NOTIONAL_END) return 'entryNotional'
  if (abs(position.foldedMargin) >= FOLDED_MARGIN_END) return 'foldedMargin'
  return null
}

const NO_LEG = { released: 0n, realised: 0n, added: 0n, fee: 0n as Quote }

/**
 * Applies one fill: closing steps, then opening steps. Free balance + margin changes exactly by the realised result
 * less the fee. `isHealthyAfterFills` checks the ratio after all fills.
 */
export function applyFill(
  spec: MarketSpec,
  position: Position,
  fill: PositionFill,
  terms: FillTerms,
): Verdict<FillResult, FillRefusal> {
  invariant(
    fill.steps > 0 && fill.takerSteps >= 0 && fill.takerSteps <= fill.steps,
    'a fill has steps, and at most that many taker steps',
  )
  const closed = closingSteps(position.size, fill.side, fill.steps)
  const opened = (fill.steps - closed) as Steps

  const verdict = closed > 0 ? close(spec, position, fill, closed, terms) : accept({ position, ...NO_LEG })
  if (!verdict.ok) return verdict
  const closing = verdict.value
  const opening =
    opened > 0 ? grow(spec, closing.position, fill, opened, terms) : { ...NO_LEG, position: closing.position }

  const field = outOfRangeField(opening.position)
  if (field !== null) return refuse({ code: 'OUT_OF_RANGE', field })
  const fee = closing.fee + opening.fee
  return accept({
    position: opening.position,
    closed,
    opened,
    released: closing.released as Quote,
    realised: closing.realised as Quote,
    added: opening.added as Quote,
    fee: fee as Quote,
    closingFee: closing.fee,
    freeDelta: (closing.released + closing.realised - opening.added - fee) as Quote,
  })
}

/**
 * The worst clearing price in ticks at which every share of the position closes without bad debt. Source: equity = 0,
 * risk research C3. Long: 0 if unbounded. Short: negative if none is solvent.
 */
export function bankruptcyPrice(spec: MarketSpec, position: Position, index: FundingIndex): Ticks {
  invariant(position.size !== 0, 'a flat account has no bankruptcy price')
  // Rounded per step as in `applyFill`, so the price covers partial closes and later closes of the part.
  const steps = BigInt(Math.abs(position.size))
  const tickValue = (spec.tick * spec.step) / ONE
  const margin = divFloor(marginOf(position, index), steps)
  if (position.size < 0) {
    const ticks = divFloor(position.entryNotional / steps + margin, tickValue)
    return Number(ticks) as Ticks
  }
  const ticks = divCeil(divCeil(position.entryNotional, steps) - margin, tickValue)
  return Number(ticks > 0n ? ticks : 0n) as Ticks
}
