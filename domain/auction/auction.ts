/**
 * Runs the frequent batch auction of one market: one clearing price at the largest volume, pro-rata
 * allocation.
 */

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

/**
 * A batch that fills more orders than this is cleared again over the largest `BATCH_ORDERS_PER_SIDE` orders
 * of each side.
 */
export const BATCH_ORDERS = 800
export const BATCH_ORDERS_PER_SIDE = 400

export interface AuctionInput {
  readonly spec: MarketSpec
  /** The auction does not change it. */
  readonly book: Book
  /** The matched position of an account: mined and unsettled fills together. */
  readonly positions: (account: UserId) => Position
  readonly fundingIndex: FundingIndex
  readonly oracle: Price
  readonly reference: Reference | null
  readonly asOf: Millis
  readonly excluded?: Exclusions
}

/**
 * Clears one batch. The result depends on the set of orders only, not on the sequence in which they were
 * inserted. The cost depends on the number of orders that reach the other side's best price, not on the size
 * of the book. Expired orders and market orders whose wait is over take no part; `overdue` lists them.
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

/** Clears a batch again from its stored inputs. The result equals the original, `inputs` included. */
export function recompute({ orders, positions, ...rest }: ClearingInputs): Clearing {
  const byAccount = new Map(positions)
  return clear({ ...rest, book: Book.of(orders), positions: (account) => byAccount.get(account) ?? FLAT })
}

/**
 * Repeats the round while the batch exceeds a limit. A batch that fills more than `BATCH_ORDERS` orders is
 * cleared again over the largest orders. A batch that needs several parts is cleared again without flips.
 * Each restriction is applied at most once and stays in force. 400 orders per side cannot exceed the limit,
 * so there are at most three rounds, or four if forbidding flips brings in more orders.
 */
function runRounds(input: RoundInput): { first: Round; last: Round } {
  const first = runRound(input)
  let next = input
  let last = first
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

const remainderOf = ({ order, steps }: RoundResult['buys'][number]): Pick<Fill, 'account' | 'remaining'> => ({
  account: order.account,
  remaining: (order.remaining - steps) as Steps,
})

/**
 * The orders of either side that are eligible at the price and have the largest remaining size; of equals,
 * the earlier seq.
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

interface CancelInput {
  readonly terms: RiskTerms
  readonly participants: readonly Participant[]
  readonly candidates: Candidates
  /** Of the first round, in which all candidates took part. */
  readonly entries: BatchEntries
  readonly fills: readonly Fill[]
}

/** The candidates that leave the book with this batch: self-trades, and market orders with steps left. */
function cancelsOf({ terms, participants, candidates, entries, fills }: CancelInput): Cancel[] {
  const cancels: Cancel[] = []
  for (const { selfTrades } of participants) {
    for (const seq of selfTrades) cancels.push({ seq, reason: 'SELF_TRADE' })
  }
  if (candidates.marketOrders.length > 0) {
    const ending = new Set(cancels.map(({ seq }) => seq))
    for (const { seq, remaining } of fills) if (remaining === 0) ending.add(seq)
    const entered = new Set([...marketOrderSeqs(entries.buys), ...marketOrderSeqs(entries.sells)])
    for (const order of candidates.marketOrders) {
      if (ending.has(order.seq)) continue
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

/** Why a market order took no part in a batch that ran; null if it keeps waiting. */
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
  const open = participants.filter(({ position }) => position.size !== 0)
  return {
    spec,
    asOf,
    oracle,
    fundingIndex,
    reference,
    orders: [...buys, ...sells],
    positions: open.map(({ account, position }) => [account, position] as const),
  }
}
