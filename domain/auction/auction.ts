/** The frequent batch auction of one market: one price, the largest volume, pro rata. */

import { Book, type RestingOrder } from '../book/book.ts'
import { priceBand } from '../market/band.ts'
import type { MarketSpec } from '../market/market.ts'
import type { StatusReason } from '../orders/order.ts'
import { FLAT, type Position } from '../positions/position.ts'
import type { FundingIndex, Millis, Price, Seq, Steps, Ticks, UserId } from '../units.ts'
import { type Candidates, candidatesOf, type Exclusions, NO_EXCLUSIONS } from './candidates.ts'
import type { Cancel, Clearing, ClearingInputs, Fill, Proration, Reference } from './clearing.ts'
import { type PriceResult, referenceTick } from './clearing-price.ts'
import { fillsOf } from './fills.ts'
import { OpeningMargins } from './opening-margin.ts'
import { pairUp } from './pairing.ts'
import { type Participant, participantsOf } from './participants.ts'
import { fitsOnePart } from './parts.ts'
import { PositionCapacities } from './position-capacity.ts'
import { type Round, type RoundInput, type RoundResult, runRound } from './round.ts'
import { awaitsOracle, type BatchEntries, type BatchEntry, eligibleAt, type RiskTerms } from './tranches.ts'

/** A batch that fills more orders than this is cleared again over the largest of each side. */
export const BATCH_ORDERS = 800
export const BATCH_ORDERS_PER_SIDE = 400

export interface AuctionInput {
  readonly spec: MarketSpec
  /** Read, not changed. */
  readonly book: Book
  /** The matched position: mined and unsettled fills together. */
  readonly positions: (account: UserId) => Position
  readonly fundingIndex: FundingIndex
  readonly oracle: Price
  readonly reference: Reference | null
  readonly asOf: Millis
  readonly excluded?: Exclusions
}

/**
 * Clears one batch. The outcome depends on the set of orders only, not on the order they came in. Costs as much as the orders
 * that reach the other side's best price, whatever else rests. Orders that time has ended take no part: see `overdue`.
 */
export function clear(input: AuctionInput): Clearing {
  const { spec, oracle, fundingIndex, asOf, reference } = input
  const band = priceBand(spec, oracle)
  const terms = {
    spec,
    band,
    oracle,
    openingMargins: new OpeningMargins(spec, oracle, band),
    capacities: new PositionCapacities(spec, band, oracle, fundingIndex),
  }
  const candidates = candidatesOf(input.book, band, asOf, input.excluded ?? NO_EXCLUSIONS)
  const participants = participantsOf(terms, candidates, input.positions)
  const { first, last } = runRounds({
    terms,
    participants,
    reference: referenceTick(spec, { reference, oracle, asOf, band }),
    restrictedTo: null,
    mayFlip: true,
  })
  const trade = last.result === null ? NO_TRADE : tradeOf(spec, last.result)
  const cancels = cancelsOf({ terms, participants, candidates, entries: first.entries, fills: trade.fills })
  return { ...trade, ...band, cancels, inputs: inputsOf(input, candidates, participants) }
}

/** Clears the batch once more from what it says about itself: the result is the same, `inputs` included. */
export function recompute({ orders, positions, ...rest }: ClearingInputs): Clearing {
  const held = new Map(positions)
  return clear({ ...rest, book: Book.of(orders), positions: (account) => held.get(account) ?? FLAT })
}

/**
 * A batch with too many fills is cleared again over the largest orders; one that needs several parts, without flips. Each happens
 * once at most, the second keeps the first, and the largest 400 of either side cannot be too many: three rounds in the worst case,
 * four where the lack of flips brings in more orders.
 */
function runRounds(input: RoundInput): { first: Round; last: Round } {
  const first = runRound(input)
  let setup = input
  let last = first
  while (last.result !== null) {
    const filled = [...last.result.buys, ...last.result.sells]
    if (filled.length > BATCH_ORDERS && setup.restrictedTo === null) {
      setup = { ...setup, restrictedTo: largestOrders(last.entries, last.result.price) }
    } else if (setup.mayFlip && !fitsOnePart(filled.map(remainderOf))) {
      setup = { ...setup, mayFlip: false }
    } else break
    last = runRound(setup)
  }
  return { first, last }
}

const remainderOf = ({ order, steps }: RoundResult['buys'][number]): Pick<Fill, 'account' | 'remaining'> => ({
  account: order.account,
  remaining: (order.remaining - steps) as Steps,
})

/** Of either side's orders that are eligible at the price, those with the largest remaining size; the earlier of equals. */
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

interface CancelInput {
  readonly terms: RiskTerms
  readonly participants: readonly Participant[]
  readonly candidates: Candidates
  /** Of all orders that could take part. */
  readonly entries: BatchEntries
  readonly fills: readonly Fill[]
}

/** Self-trades, and what a market order has left: of all candidates, the orders that do not stay. */
function cancelsOf({ terms, participants, candidates, entries, fills }: CancelInput): Cancel[] {
  const cancels: Cancel[] = []
  for (const { selfTrades } of participants) {
    for (const seq of selfTrades) cancels.push({ seq, reason: 'SELF_TRADE' })
  }
  if (candidates.marketOrders.length > 0) {
    const settled = new Set(cancels.map(({ seq }) => seq))
    for (const { seq, remaining } of fills) if (remaining === 0) settled.add(seq)
    const entered = new Set([...marketOrderSeqs(entries.buys), ...marketOrderSeqs(entries.sells)])
    for (const order of candidates.marketOrders) {
      if (settled.has(order.seq)) continue
      const reason = entered.has(order.seq) ? 'MARKET_REMAINDER' : exclusionReason(terms, participants, order)
      if (reason !== null) cancels.push({ seq: order.seq, reason })
    }
  }
  return cancels.sort((a, b) => a.seq - b.seq)
}

function marketOrderSeqs(entries: readonly BatchEntry[]): Seq[] {
  const seqs: Seq[] = []
  for (const { bounded } of entries) if (bounded.order.type === 'MARKET') seqs.push(bounded.order.seq)
  return seqs
}

/** Why a market order took no part although the batch ran; null where it goes on waiting. */
function exclusionReason(
  terms: RiskTerms,
  participants: readonly Participant[],
  order: RestingOrder,
): StatusReason | null {
  if (awaitsOracle(terms, order)) return null
  const { capacity, orders } = participants.find(({ account }) => account === order.account) as Participant
  if (order.reduceOnly || order.forced) {
    return order.side === capacity.reducingSide ? 'MARKET_REMAINDER' : 'REDUCE_ONLY_NO_POSITION'
  }
  const isTwoSided = orders.some((other) => other.order.side !== order.side)
  return isTwoSided ? 'MARKET_REMAINDER' : 'INSUFFICIENT_MARGIN'
}

function inputsOf(
  { spec, asOf, oracle, fundingIndex, reference }: AuctionInput,
  { buys, sells }: Candidates,
  participants: readonly Participant[],
): ClearingInputs {
  const held = participants.filter(({ position }) => position.size !== 0)
  return {
    spec,
    asOf,
    oracle,
    fundingIndex,
    reference,
    orders: [...buys, ...sells],
    positions: held.map(({ account, position }) => [account, position] as const),
  }
}
