/**
 * One account's isolated position in one market, as the contract keeps it in one slot, and what one fill does
 * to it.
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
  /** Price paid for the position, not negative: sum of price x quantity of what is still open. */
  readonly entryNotional: Quote
  /**
   * Margin less funding: margin = folded - size x fundingIndex, whatever the index has become. May be
   * negative.
   */
  readonly foldedMargin: Quote
  /** Of the last opening fill or leverage change; 0 only for an account never seen in this market. */
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

/** One order's share of a part, as it reaches the position. */
export interface PositionFill {
  readonly side: Side
  /** Clearing price. */
  readonly price: Ticks
  /** Whole fill, positive. The closing share goes first, the rest grows or opens. */
  readonly steps: Steps
  /** The part of `steps` that pays the taker rate; falls on the closing share first. */
  readonly takerSteps: Steps
  /** The order's leverage; used by the growing share only. */
  readonly leverage: number
  /** What the growing share is margined at: see `openingBasis`. */
  readonly basis: Price
}

/** Same for every fill of a part. */
export interface FillTerms extends FeeRates {
  readonly fundingIndex: FundingIndex
}

export interface FillResult {
  readonly position: Position
  readonly closed: Steps
  readonly opened: Steps
  /** Margin that left the position with the closed share; may be negative where funding ate it. */
  readonly released: Quote
  /** Profit or loss realised by the closed share. */
  readonly realised: Quote
  /** Margin that entered with the opened share. */
  readonly added: Quote
  /** All fees of the fill, and the part of them that the closed share paid. */
  readonly fee: Quote
  readonly closingFee: Quote
  /** Change of the account's free balance: released + realised - added - fee. */
  readonly freeDelta: Quote
}

export type FillRefusal =
  /** The closed share is worth less than nothing at this price: filling it would leave bad debt. */
  | { readonly code: 'NEGATIVE_PROCEEDS'; readonly proceeds: Quote }
  /** The new position does not fit its storage slot. */
  | { readonly code: 'OUT_OF_RANGE'; readonly field: 'size' | 'entryNotional' | 'foldedMargin' }

/** Margin of the position with all funding up to `index` settled, in wei. Exact; may be negative. */
export const marginOf = (position: Position, index: FundingIndex): Quote =>
  (position.foldedMargin - BigInt(position.size) * index) as Quote

/** The stored form of `margin` on `size` at `index`: the inverse of `marginOf`. */
export const foldMargin = (margin: bigint, size: Steps, index: FundingIndex): Quote =>
  (margin + BigInt(size) * index) as Quote

export const signOf = (side: Side): 1 | -1 => (side === 'LONG' ? 1 : -1)

/** How much of a fill on `side` closes the position; the rest of it opens. */
export const closingSteps = (size: Steps, side: Side, steps: Steps): Steps =>
  size * signOf(side) < 0 ? minOf(steps, Math.abs(size) as Steps) : (0 as Steps)

/**
 * Wei of margin per opened step at `basis` and `leverage`. Up per step, so that many fills never exceed one
 * reservation.
 */
export const marginPerStep = (spec: MarketSpec, basis: Price, leverage: number): Quote =>
  mulDivUp(basis, spec.step, ONE * BigInt(leverage)) as Quote

/**
 * The price at which an opening share is margined. A buy: the clearing price. A sell: its signed limit, so
 * that a fill above it brings profit rather than a larger debit; a market sell: clearing or oracle price, the
 * lower. A binary sell: 1 - clearing. `limit` is the signed price in ticks, 0 for a market order.
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
 * The closed share of margin and entry. Margin rounds down; entry rounds for the remainder: long up, short
 * down.
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

/** The first field of `position` that its storage slot cannot hold. */
export function outOfRangeField(position: Position): 'size' | 'entryNotional' | 'foldedMargin' | null {
  if (!Number.isSafeInteger(position.size)) return 'size'
  if (position.entryNotional >= ENTRY_NOTIONAL_END) return 'entryNotional'
  if (abs(position.foldedMargin) >= FOLDED_MARGIN_END) return 'foldedMargin'
  return null
}

const NO_LEG = { released: 0n, realised: 0n, added: 0n, fee: 0n as Quote }

/**
 * One fill of one order: the share that closes, then the share that grows or opens. Conserves money exactly:
 * free + margin changes by the realised result less the fee, and nothing is created by rounding; rounding
 * only decides how much of the margin and entry leaves with the closed share. Refused: proceeds below zero
 * before the fee; a position that does not fit. Ratio checks come after all fills of the part.
 */
export function applyFill(
  spec: MarketSpec,
  position: Position,
  fill: PositionFill,
  terms: FillTerms,
): Verdict<FillResult, FillRefusal> {
  invariant(fill.steps > 0 && fill.takerSteps >= 0 && fill.takerSteps <= fill.steps, 'a fill has steps')
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
 * The worst clearing price at which any share of the position can still be closed without bad debt, in ticks:
 * a long closes at it or higher, a short at it or lower. Counted per step with the roundings of `applyFill`,
 * so it holds for every partial close and for every later one of the same part. A long's is at least 0 (no
 * bound); a short's is negative where no price is solvent. Source: equity = 0, risk research C3.
 */
export function bankruptcyPrice(spec: MarketSpec, position: Position, index: FundingIndex): Ticks {
  invariant(position.size !== 0, 'a flat account has no bankruptcy price')
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
