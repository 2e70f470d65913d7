/** The frequent batch auction of one market: one price, the largest volume, pro rata. */
import { priceBand } from './band.ts'
import { Book, type RestingOrder } from './book.ts'
import { type Candidates, candidatesOf, type Excluded, NONE_EXCLUDED } from './candidates.ts'
import type { Cancel, Clearing, ClearingInputs, Reference } from './clearing.ts'
import { referenceTick } from './clearing-price.ts'
import type { MarketSpec } from './market.ts'
import type { Side, StatusReason } from './order.ts'
import { type Participant, participantsOf } from './participants.ts'
import { fitsOnePart } from './parts.ts'
import { FLAT, type Position } from './position.ts'
import { type Round, type RoundInput, runRound, type Trade } from './round.ts'
import { awaitsOracle, type Entry, eligibleAt, type RiskTerms } from './tranches.ts'
import type { FundingIndex, Millis, Price, Seq, Steps, Ticks, UserId } from './units.ts'

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
  readonly excluded?: Excluded
}

/**
 * Clears one batch. The outcome depends on the set of orders only, not on the order they came in. Costs as much as the orders
 * that reach the other side's best price, whatever else rests. Orders that time has ended take no part: see `overdue`.
 */
export function clear(input: AuctionInput): Clearing {
  const { spec, oracle, fundingIndex, asOf, reference } = input
  const band = priceBand(spec, oracle)
  const terms: RiskTerms = { spec, band, oracle, fundingIndex, mayFlip: true }
  const candidates = candidatesOf(input.book, band, asOf, input.excluded ?? NONE_EXCLUDED)
  const participants = participantsOf(terms, candidates, input.positions)
  const { first, last } = runRounds({
    terms,
    participants,
    only: null,
    reference: referenceTick(spec, { reference, oracle, asOf, band }),
  })
  return {
    ...band,
    ...outcomeOf(last.trade),
    cancels: cancelsOf(terms, participants, candidates, first.entries, last.trade),
    inputs: inputsOf(input, candidates, participants),
  }
}

/** Clears the batch once more from what it says about itself: the result is the same, `inputs` included. */
export function recompute({ orders, positions, ...rest }: ClearingInputs): Clearing {
  const held = new Map(positions)
  return clear({ ...rest, book: Book.of(orders), positions: (account) => held.get(account) ?? FLAT })
}

/**
 * A batch with too many fills is cleared again over the largest orders; one that needs several parts, without flips. Each happens
 * once at most, the second keeps the first, and the largest 400 of either side cannot be too many: four rounds in the worst case.
 */
function runRounds(input: RoundInput): { first: Round; last: Round } {
  const first = runRound(input)
  let setup = input
  let last = first
  while (last.trade !== null) {
    if (last.trade.fills.length > BATCH_ORDERS && setup.only === null) {
      setup = { ...setup, only: largest(last.entries, last.trade.price) }
    } else if (setup.terms.mayFlip && !fitsOnePart(last.trade)) {
      setup = { ...setup, terms: { ...setup.terms, mayFlip: false } }
    } else break
    last = runRound(setup)
  }
  return { first, last }
}

/** Of either side's orders that are eligible at the price, those with the largest remaining size; the earlier of equals. */
function largest(entries: readonly Entry[], price: Ticks): Set<Seq> {
  const eligible = entries.filter((entry) => eligibleAt(entry, price) > 0).map(({ order }) => order)
  const ofSide = (side: Side): RestingOrder[] =>
    eligible
      .filter((order) => order.side === side)
      .sort((a, b) => b.remaining - a.remaining || a.seq - b.seq)
      .slice(0, BATCH_ORDERS_PER_SIDE)
  return new Set([...ofSide('LONG'), ...ofSide('SHORT')].map(({ seq }) => seq))
}

const NO_TRADE = {
  outcome: 'no_cross',
  price: null,
  rule: null,
  volume: 0 as Steps,
  demand: 0 as Steps,
  supply: 0 as Steps,
  ration: null,
  fills: [],
  pairs: [],
} as const

const outcomeOf = (trade: Trade | null) =>
  trade === null ? NO_TRADE : { outcome: 'cleared' as const, ...trade }

function cancelsOf(
  terms: RiskTerms,
  participants: readonly Participant[],
  { buys, sells }: Candidates,
  entries: readonly Entry[],
  trade: Trade | null,
): Cancel[] {
  const selfTrades = new Set(participants.flatMap((participant) => participant.selfTrades))
  const cancels = [...selfTrades].map((seq): Cancel => ({ seq, reason: 'SELF_TRADE' }))
  const markets = [...buys, ...sells].filter(({ type, seq }) => type === 'MARKET' && !selfTrades.has(seq))
  if (markets.length > 0) {
    const filled = new Set(trade?.fills.filter(({ left }) => left === 0).map(({ seq }) => seq))
    const entered = new Set(entries.map(({ order }) => order.seq))
    const byAccount = new Map(participants.map((participant) => [participant.standing.account, participant]))
    for (const order of markets) {
      if (filled.has(order.seq)) continue
      const participant = byAccount.get(order.account) as Participant
      const reason = entered.has(order.seq) ? 'MARKET_REMAINDER' : whyOut(terms, participant, order)
      if (reason !== null) cancels.push({ seq: order.seq, reason })
    }
  }
  return cancels.sort((a, b) => a.seq - b.seq)
}

/** Why a market order took no part although the batch ran; null where it goes on waiting. */
function whyOut(
  terms: RiskTerms,
  { standing, reach }: Participant,
  order: RestingOrder,
): StatusReason | null {
  if (awaitsOracle(terms, order)) return null
  if (order.reduceOnly || order.forced) {
    return order.side === standing.reducingSide ? 'MARKET_REMAINDER' : 'REDUCE_ONLY_NO_POSITION'
  }
  return reach === null ? 'INSUFFICIENT_MARGIN' : 'MARKET_REMAINDER'
}

function inputsOf(
  { spec, asOf, oracle, fundingIndex, reference }: AuctionInput,
  { buys, sells }: Candidates,
  participants: readonly Participant[],
): ClearingInputs {
  const held = participants.filter(({ standing }) => standing.position.size !== 0)
  return {
    spec,
    asOf,
    oracle,
    fundingIndex,
    reference,
    orders: [...buys, ...sells].sort((a, b) => a.seq - b.seq),
    positions: held.map(({ standing }) => [standing.account, standing.position] as const),
  }
}
