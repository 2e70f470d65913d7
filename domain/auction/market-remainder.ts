/**
 * Lists the orders that leave the book with a batch, with reasons: self-trades, and market orders with steps left.
 * A forced order stays in the book until its liquidation ends it.
 */

import type { RestingOrder } from '../book/book.ts'
import type { Side, StatusReason } from '../orders/order.ts'
import type { Seq, Steps, Ticks, UserId } from '../units.ts'
import type { Candidates } from './candidates.ts'
import type { Cancel, Fill, Protection } from './clearing.ts'
import type { Participant } from './participants.ts'
import { isBetter, type LimitQuote, type QuoteInput, QuoteList } from './quotes.ts'
import { awaitsOracle, type BatchEntries, type BatchEntry, boundOrder, type RiskTerms } from './tranches.ts'

export interface CancelInput {
  readonly terms: RiskTerms
  /** All limit orders that can take part, under terms without protections. */
  readonly quotes: QuoteInput
  readonly participants: readonly Participant[]
  readonly candidates: Candidates
  /** Entries of the first round, in which all candidates took part. */
  readonly entries: BatchEntries
  /** Clearing price; `price` is null and `volume` 0 if nothing traded. */
  readonly price: Ticks | null
  readonly volume: Steps
  readonly fills: readonly Fill[]
}

export interface Cancels {
  /** Cancels, by seq. */
  readonly cancels: readonly Cancel[]
  /** Limit orders beyond protections that decided the reasons. */
  readonly beyond: readonly RestingOrder[]
}

export function cancelsOf(input: CancelInput): Cancels {
  const { participants, candidates } = input
  const cancels: Cancel[] = []
  for (const { selfTrades } of participants) {
    for (const seq of selfTrades) cancels.push({ seq, reason: 'SELF_TRADE' })
  }
  if (candidates.marketOrders.length === 0) return { cancels: cancels.sort(bySeq), beyond: [] }

  const ending = new Set(cancels.map(({ seq }) => seq))
  for (const { seq, remaining } of input.fills) if (remaining === 0) ending.add(seq)
  const entries = marketEntries(input.entries)
  const remainders = new RemainderReasons(input)
  const byAccount = new Map(participants.map((participant) => [participant.account, participant]))
  for (const order of candidates.marketOrders) {
    if (ending.has(order.seq) || order.forced) continue
    const entry = entries.get(order.seq)
    const participant = byAccount.get(order.account) as Participant
    const reason =
      entry === undefined ? exclusionReason(input.terms, participant, order) : remainders.reasonOf(entry)
    if (reason !== null) cancels.push({ seq: order.seq, reason })
  }
  return { cancels: cancels.sort(bySeq), beyond: remainders.beyond }
}

const bySeq = (a: Cancel, b: Cancel): number => a.seq - b.seq

function marketEntries({ buys, sells }: BatchEntries): Map<Seq, BatchEntry> {
  const entries = new Map<Seq, BatchEntry>()
  for (const side of [buys, sells]) {
    for (const entry of side) {
      const { order } = entry.bounded
      if (order.type === 'MARKET') entries.set(order.seq, entry)
    }
  }
  return entries
}

/** Reason why a market order took no part in a batch that ran; null if it keeps waiting. */
function exclusionReason(
  terms: RiskTerms,
  { capacity, orders }: Participant,
  order: RestingOrder,
): StatusReason | null {
  if (awaitsOracle(terms, order)) return null
  if (order.reduceOnly) {
    return order.side === capacity.reducingSide ? 'MARKET_REMAINDER' : 'REDUCE_ONLY_NO_POSITION'
  }
  // If its margin suffices at a price of the band, only the account's own limits kept the order out.
  const openable = orders.find((other) => other.order.seq === order.seq)?.openable ?? (0 as Steps)
  const { openingLimit } = boundOrder(terms, capacity, { order, openable }, null)
  return openingLimit === null ? 'INSUFFICIENT_MARGIN' : 'MARKET_REMAINDER'
}

/** Finds the remainders that only a protection caused, and collects the limit orders that decided them. */
class RemainderReasons {
  readonly beyond: RestingOrder[] = []
  readonly #quotes: QuoteInput
  readonly #input: CancelInput
  readonly #lists = new Map<Side, QuoteList>()
  readonly #demands = new Map<Side, FreeDemand>()
  readonly #protections: ReadonlyMap<Seq, Protection>
  readonly #price: Ticks | null
  readonly #filled: ReadonlyMap<Seq, number>

  constructor(input: CancelInput) {
    const { terms, quotes, price, fills } = input
    this.#input = input
    this.#quotes = quotes
    this.#protections = terms.protections
    this.#price = price
    this.#filled = new Map(fills.map(({ seq, fill }) => [seq, fill]))
  }

  /**
   * `PRICE_PROTECTION`: without protections, the unfilled share or another account's quote would have added volume.
   * `MARKET_REMAINDER`: the order's side exceeded the volume that it could meet.
   */
  reasonOf(entry: BatchEntry): 'PRICE_PROTECTION' | 'MARKET_REMAINDER' {
    const { order } = entry.bounded
    const { price } = this.#protections.get(order.seq) as Protection
    const reach = this.#reachWithout(price, entry)
    if (reach === null) return 'MARKET_REMAINDER'
    const quoteSide = order.side === 'LONG' ? 'SHORT' : 'LONG'
    const isWithin = (limit: Ticks, bound: Ticks): boolean => !isBetter(quoteSide, bound, limit)
    const { own, other } = this.#nextBeyond(price, reach, order)
    if (own !== undefined) this.beyond.push(own.order)
    const cleared = this.#price
    if (other !== undefined) {
      const tookPart = cleared !== null && !isBetter(quoteSide, price, cleared)
      if (tookPart && this.#demandOf(order.side).at(other.limit) <= this.#input.volume)
        return 'MARKET_REMAINDER'
      this.beyond.push(other.order)
      return 'PRICE_PROTECTION'
    }
    const isCleared =
      cleared !== null &&
      isBetter(quoteSide, price, cleared) &&
      isWithin(cleared, reach) &&
      (own === undefined || isBetter(quoteSide, cleared, own.limit))
    return isCleared ? 'PRICE_PROTECTION' : 'MARKET_REMAINDER'
  }

  /**
   * How far an unfilled, protection-bound share would reach without protection; null if there is no such share.
   */
  #reachWithout(price: Ticks, { bounded, reducing, opening }: BatchEntry): Ticks | null {
    const { order, capacity, openable, reducingLimit, openingLimit } = bounded
    const filled = this.#filled.get(order.seq) ?? 0
    const free = boundOrder(this.#quotes.terms, capacity, { order, openable }, null)
    const reaches = [
      filled < reducing && reducingLimit === price ? free.reducingLimit : null,
      filled < reducing + opening && opening > 0 && openingLimit === price ? free.openingLimit : null,
    ].filter((limit) => limit !== null && limit !== price)
    const [first = null, second = first] = reaches
    if (first === null || second === null) return first
    return isBetter(order.side, first, second) ? first : second
  }

  /**
   * The first reachable quote of another account beyond the price, and the order's own first quote at or before it.
   * A market order stops short of its account's quotes, unless it is forced.
   */
  #nextBeyond(
    price: Ticks,
    reach: Ticks,
    { account, side, forced }: RestingOrder,
  ): { own?: LimitQuote; other?: LimitQuote } {
    const quoteSide = side === 'LONG' ? 'SHORT' : 'LONG'
    for (const level of this.#listOf(quoteSide).beyond(price)) {
      if (isBetter(quoteSide, reach, level.limit)) break
      const own = forced ? undefined : level.of(account)
      if (own !== undefined) return { own }
      const other = level.without(account)
      if (other !== null) return { other }
    }
    return {}
  }

  #demandOf(side: Side): FreeDemand {
    let demand = this.#demands.get(side)
    if (demand === undefined) {
      const { buys, sells } = this.#input.entries
      demand = new FreeDemand(this.#quotes.terms, this.#protections, side, side === 'LONG' ? buys : sells)
      this.#demands.set(side, demand)
    }
    return demand
  }

  #listOf(side: Side): QuoteList {
    let list = this.#lists.get(side)
    if (list === undefined) {
      list = this.#newList(side)
      this.#lists.set(side, list)
    }
    return list
  }

  /** Shares of the batch, followed by limit orders that are not candidates. */
  #newList(side: Side): QuoteList {
    const { candidates, entries } = this.#input
    const isSell = side === 'SHORT'
    const first = this.#firstProtection(isSell ? candidates.buys : candidates.sells)
    const known: LimitQuote[] = []
    const reduced = new Map<UserId, number>()
    for (const { bounded, reducing, opening } of isSell ? entries.sells : entries.buys) {
      const { order, reducingLimit, openingLimit } = bounded
      if (reducing > 0) reduced.set(order.account, (reduced.get(order.account) ?? 0) + reducing)
      if (order.type === 'MARKET') continue
      if (reducing > 0 && isBetter(side, first, reducingLimit as Ticks))
        known.push({ order, limit: reducingLimit as Ticks, steps: reducing })
      if (opening > 0 && isBetter(side, first, openingLimit as Ticks))
        known.push({ order, limit: openingLimit as Ticks, steps: opening })
    }
    return new QuoteList(this.#quotes, side, known, { limit: candidates.worst[side], reduced })
  }

  /** Tightest protection of the side's market orders; no list is read before this price. */
  #firstProtection(orders: readonly RestingOrder[]): Ticks {
    const prices = orders
      .filter(({ type }) => type === 'MARKET')
      .map(({ seq }) => (this.#protections.get(seq) as Protection).price)
    return (orders[0]?.side === 'LONG' ? Math.min(...prices) : Math.max(...prices)) as Ticks
  }
}

/** Steps of one side by the price up to which they would trade without protections. */
class FreeDemand {
  readonly #side: Side
  readonly #limits: Ticks[] = []
  /** Cumulative steps at each limit and all better limits. */
  readonly #sums: number[] = []

  /** `terms` have no protections. Shares that stop before their protection are unchanged. */
  constructor(
    terms: RiskTerms,
    protections: RiskTerms['protections'],
    side: Side,
    entries: readonly BatchEntry[],
  ) {
    this.#side = side
    const shares = entries.flatMap(({ bounded, reducing, opening }) => {
      const { order, capacity, reducingLimit, openingLimit } = bounded
      const protection = protections.get(order.seq)?.price
      const free = protection === undefined ? bounded : boundOrder(terms, capacity, bounded, null)
      return [
        { limit: reducingLimit === protection ? free.reducingLimit : reducingLimit, steps: reducing },
        { limit: openingLimit === protection ? free.openingLimit : openingLimit, steps: opening },
      ].filter((share): share is { limit: Ticks; steps: Steps } => share.steps > 0)
    })
    shares.sort((a, b) => (side === 'LONG' ? b.limit - a.limit : a.limit - b.limit))
    let sum = 0
    for (const { limit, steps } of shares) {
      sum += steps
      this.#limits.push(limit)
      this.#sums.push(sum)
    }
  }

  /** Steps that would trade at the price. */
  at(price: Ticks): number {
    let low = 0
    let high = this.#limits.length
    while (low < high) {
      const middle = (low + high) >>> 1
      const limit = this.#limits[middle] as Ticks
      if (this.#side === 'LONG' ? limit >= price : limit <= price) low = middle + 1
      else high = middle
    }
    return low === 0 ? 0 : (this.#sums[low - 1] as number)
  }
}
