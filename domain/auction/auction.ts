/**
 * Runs a market's frequent batch auction: one clearing price at the largest volume, and pro-rata allocation.
 */

import { Book, type RestingOrder } from '../book/book.ts'
import { invariant } from '../invariant.ts'
import { tickNearest } from '../market/band.ts'
import type { MarketSpec } from '../market/market.ts'
import { FLAT, type Position } from '../positions/position.ts'
import type { FundingIndex, Millis, Price, Rate, Seq, Steps, Ticks, UserId } from '../units.ts'
import { type Candidates, candidatesOf, type Exclusions, eligibility, NO_EXCLUSIONS } from './candidates.ts'
import {
  type Cleared,
  type Clearing,
  type ClearingInputs,
  type Fill,
  type NotCleared,
  type Proration,
  RULE_VERSION,
} from './clearing.ts'
import type { PriceResult } from './clearing-price.ts'
import { fillsOf } from './fills.ts'
import { cancelsOf } from './market-remainder.ts'
import { pairUp } from './pairing.ts'
import { type Participant, participantsOf } from './participants.ts'
import { fitsOnePart } from './parts.ts'
import { protectionsOf } from './protection.ts'
import { type Round, type RoundInput, type RoundResult, runRound } from './round.ts'
import { type BatchEntries, type BatchEntry, eligibleAt, type RiskTerms, riskTermsAt } from './tranches.ts'

/**
 * Maximum orders that a batch fills. A batch above it is cleared again over the `BATCH_ORDERS_PER_SIDE`
 * largest orders of each side.
 */
export const BATCH_ORDERS = 800
export const BATCH_ORDERS_PER_SIDE = 400

export interface AuctionInput {
  readonly spec: MarketSpec
  /** Order book; the auction only reads it. */
  readonly book: Book
  /** Matched position of an account, including unsettled fills. */
  readonly positions: (account: UserId) => Position
  readonly fundingIndex: FundingIndex
  readonly oracle: Price
  readonly asOf: Millis
  /** Journal head at the market's previous auction. Orders up to this sequence count for protections. */
  readonly standingSeq: Seq
  /** Price-protection width in force in the market. */
  readonly priceProtection: Rate
  readonly excluded?: Exclusions
}

/**
 * Clears one batch. The result does not depend on insertion order. The cost grows with the orders that reach the
 * opposite best price, not with the book.
 */
export function clear(input: AuctionInput): Clearing {
  const { result, candidates, participants, consulted } = runAuction(riskTermsAt(input), input)
  return { ...result, inputs: inputsOf(input, candidates, participants, consulted) }
}

/** Inputs of an auction besides the market terms. */
export type AuctionOrders = Pick<
  AuctionInput,
  'book' | 'asOf' | 'standingSeq' | 'priceProtection' | 'excluded'
>

/** A clearing without the inputs for its recomputation. */
export type AuctionResult = Omit<Cleared, 'inputs'> | Omit<NotCleared, 'inputs'>

export interface AuctionRun {
  readonly result: AuctionResult
  readonly candidates: Candidates
  readonly participants: readonly Participant[]
  /** Tranches of all candidates before the batch size limits apply. */
  readonly entries: BatchEntries
  /** Orders that decided protections or cancel reasons. */
  readonly consulted: readonly RestingOrder[]
}

/** Runs the auction at the oracle price. The passed terms contain no protections yet. */
export function runAuction(unprotected: RiskTerms, input: AuctionOrders): AuctionRun {
  const { spec, band, oracle } = unprotected
  const { book, asOf, standingSeq, priceProtection } = input
  const isEligible = eligibility(asOf, input.excluded ?? NO_EXCLUSIONS, spec.maxLeverage)
  const { bySeq: protections, ladder } = protectionsOf(
    { terms: unprotected, book, isEligible, standingSeq, width: priceProtection },
    book.marketOrders('LONG').filter(isEligible),
    book.marketOrders('SHORT').filter(isEligible),
  )
  const terms = { ...unprotected, protections }
  const candidates = candidatesOf({ book, band, isEligible, protections })
  const participants = participantsOf(terms, candidates)
  const round = { terms, participants, oracle: tickNearest(spec, oracle), restrictedTo: null, mayFlip: true }
  const { first, last } = runRounds(round)
  const trade = last.result === null ? NO_TRADE : tradeOf(spec, last.result)
  const quotes = { terms: unprotected, book, isQuoted: isEligible }
  const { price, volume, fills } = trade
  const { entries } = first
  const { cancels, beyond } = cancelsOf({
    ...{ terms, quotes, participants, candidates, price, volume, fills, entries },
  })
  const bySeq = [...protections.values()].sort((a, b) => a.seq - b.seq)
  const result = { ...trade, ...band, cancels, protections: bySeq }
  return { result, candidates, participants, entries, consulted: [...ladder, ...beyond] }
}

/** Clears a batch again from its stored inputs. The result equals the original, including `inputs`. */
export function recompute({ ruleVersion, orders, ladder, positions, ...rest }: ClearingInputs): Clearing {
  invariant(
    ruleVersion === RULE_VERSION,
    `rule version ${RULE_VERSION} cannot recompute a batch of version ${ruleVersion}`,
  )
  const byAccount = new Map(positions)
  return clear({
    ...rest,
    book: Book.of([...orders, ...ladder]),
    positions: (account) => byAccount.get(account) ?? FLAT,
  })
}

/** Clears again over the largest orders above `BATCH_ORDERS` fills, and again without flips if several parts are needed. */
function runRounds(input: RoundInput): { first: Round; last: Round } {
  const first = runRound(input)
  let next = input
  let last = first
  // Each restriction is added at most once and stays in force: at most three rounds, or four if forbidding flips adds
  // orders.
  while (last.result !== null) {
    const filled = [...last.result.buys, ...last.result.sells]
    if (filled.length > BATCH_ORDERS && next.restrictedTo === null) {
      next = { ...next, restrictedTo: largestOrders(last.entries, last.result.price) }
    } else if (next.mayFlip && !fitsOnePart(filled.map(remainderOf))) {
      next = { ...next, mayFlip: false }
    } else break
    last = runRound(next)
  }
  return { first, last }
}

const remainderOf = ({
  order,
  steps,
}: RoundResult['buys'][number]): Pick<Fill, 'account' | 'remaining' | 'unused'> => ({
  account: order.account,
  remaining: (order.remaining - steps) as Steps,
  ...(order.unused !== undefined && { unused: order.unused }),
})

/**
 * Orders of each side that are eligible at the price and have the largest remaining size; the earlier seq
 * wins ties.
 */
function largestOrders({ buys, sells }: BatchEntries, price: Ticks): Set<Seq> {
  const ofSide = (entries: readonly BatchEntry[]): RestingOrder[] =>
    entries
      .filter((entry) => eligibleAt(entry, price) > 0)
      .map(({ bounded }) => bounded.order)
      .sort((a, b) => b.remaining - a.remaining || a.seq - b.seq)
      .slice(0, BATCH_ORDERS_PER_SIDE)
  return new Set([...ofSide(buys), ...ofSide(sells)].map(({ seq }) => seq))
}

const NO_TRADE = {
  outcome: 'no_cross',
  price: null,
  rule: null,
  volume: 0 as Steps,
  demand: 0 as Steps,
  supply: 0 as Steps,
  proration: null,
  fills: [],
  pairs: [],
} as const

function tradeOf(spec: MarketSpec, { buys, sells, ...result }: RoundResult) {
  const pairs = pairUp(spec, result.price, buys, sells)
  const fills = fillsOf([buys, sells], pairs)
  return { outcome: 'cleared' as const, ...result, proration: prorationOf(result), fills, pairs }
}

function prorationOf({ demand, supply }: PriceResult): Proration | null {
  if (demand === supply) return null
  return demand > supply
    ? { side: 'LONG', volume: supply, eligible: demand }
    : { side: 'SHORT', volume: demand, eligible: supply }
}

/** `consulted`: orders that decided protections or cancel reasons. */
function inputsOf(
  input: AuctionInput,
  { buys, sells }: Candidates,
  participants: readonly Participant[],
  consulted: readonly RestingOrder[],
): ClearingInputs {
  const { spec, asOf, oracle, fundingIndex, standingSeq, priceProtection, positions } = input
  const orders = [...buys, ...sells]
  const open = participants
    .map(({ account }) => [account, positions(account)] as const)
    .filter(([, { size }]) => size !== 0)
  const known = new Set(consulted.length === 0 ? [] : orders.map(({ seq }) => seq))
  const ladder = new Map(consulted.filter(({ seq }) => !known.has(seq)).map((order) => [order.seq, order]))
  const accounts = new Set(ladder.size === 0 ? [] : participants.map(({ account }) => account))
  for (const { account } of ladder.values()) {
    if (accounts.has(account)) continue
    accounts.add(account)
    const position = positions(account)
    if (position.size !== 0) open.push([account, position])
  }
  return {
    ruleVersion: RULE_VERSION,
    ...{ spec, asOf, oracle, fundingIndex, standingSeq, priceProtection },
    orders,
    ladder: [...ladder.values()],
    positions: open,
  }
}
