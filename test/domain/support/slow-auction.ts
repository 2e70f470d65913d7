/**
 * The auction once more, slow and obvious: every tick of the band is tried, every rule is asked of every order at every tick, and
 * pairs are found by lining up single steps. Shares with the fast one the types, the band, and what settling does to a position.
 */

import type { PriceRule } from '../../../domain/auction/clearing.ts'
import type { RestingOrder } from '../../../domain/book/book.ts'
import { priceBand } from '../../../domain/market/band.ts'
import type { MarketSpec } from '../../../domain/market/market.ts'
import type { Position } from '../../../domain/positions/position.ts'
import type { FundingIndex, Millis, Price, Rate, Seq, UserId } from '../../../domain/units.ts'
import { pairsOf, type SlowPair } from './slow-pairing.ts'
import { type Row, slowPrice } from './slow-price.ts'
import { type SlowProtection, type SlowQuote, slowProtection } from './slow-protection.ts'
import { SlowRisk } from './slow-risk.ts'
import { fitsOnePart, NOTHING, shares, type Tranche, total, trancheOrder } from './slow-shares.ts'

export interface SlowInput {
  readonly spec: MarketSpec
  readonly orders: readonly RestingOrder[]
  readonly positions: (account: UserId) => Position
  readonly fundingIndex: FundingIndex
  readonly oracle: Price
  readonly standingSeq: Seq
  readonly priceProtection: Rate
  readonly asOf: Millis
  readonly excludedAccounts?: ReadonlySet<UserId>
}

export interface SlowClearing {
  readonly price: number | null
  readonly rule: PriceRule | null
  readonly volume: number
  readonly demand: number
  readonly supply: number
  readonly fills: ReadonlyMap<Seq, number>
  readonly pairs: readonly SlowPair[]
  readonly selfTrades: readonly Seq[]
  readonly protections: readonly SlowProtection[]
  /** Market orders that only their protection kept from filling whole. */
  readonly protected: readonly Seq[]
  readonly rounds: number
}

export function slowClear(input: SlowInput): SlowClearing {
  const market = new Market(input)
  const { kept, cancelled } = market.withoutSelfTrades()
  const first = market.round(kept, kept, true)
  let round = first
  let only = kept
  let mayFlip = true
  for (let rounds = 1; ; rounds++) {
    const filled = [...round.fills.keys()]
    if (filled.length > 800 && only.length === kept.length) only = market.largest(round)
    else if (mayFlip && !fitsOnePart(input.orders, round.fills)) mayFlip = false
    else {
      const left = market.protectedRemainders(first, round)
      return { ...round, selfTrades: cancelled, protections: market.protections, protected: left, rounds }
    }
    round = market.round(only, kept, mayFlip)
  }
}

interface Round extends Omit<SlowClearing, 'selfTrades' | 'protections' | 'protected' | 'rounds'> {
  readonly tranches: readonly Tranche[]
  readonly kept: readonly RestingOrder[]
}

class Market {
  readonly #in: SlowInput
  readonly #ticks: number[]
  readonly #risk: SlowRisk
  readonly protections: readonly SlowProtection[] = []
  /** False while protections are computed or left out: market orders then reach to the edge of the band. */
  #protected = false
  readonly #free = new Map<string, number>()
  readonly #quoted = new Map<string, readonly SlowQuote[]>()
  readonly #allowed = new Map<string, ReadonlySet<number>>()
  #prices: ReadonlyMap<Seq, number> = new Map()
  #grouped: { kept: readonly RestingOrder[]; accounts: Map<UserId, RestingOrder[]> } = {
    kept: [],
    accounts: new Map(),
  }

  constructor(input: SlowInput) {
    this.#in = input
    const { lo, hi } = priceBand(input.spec, input.oracle)
    this.#ticks = Array.from({ length: hi - lo + 1 }, (_, i) => lo + i)
    this.#risk = new SlowRisk(input, this.#ticks)
    this.protections = input.orders
      .filter((order) => order.type === 'MARKET' && this.#lives(order))
      .sort(bySeq)
      .map((order) => {
        const standing = this.#quotes(opposite(order), input.standingSeq)
        const quotes = standing.filter((quote) => quote.order.account !== order.account)
        return slowProtection(input, order, this.#ticks, quotes)
      })
    this.#prices = new Map(this.protections.map((protection) => [protection.seq, protection.price]))
    this.#protected = true
  }

  /** What the limit orders of one side with a seq up to `newest` can execute, each at its best tick. */
  #quotes(side: RestingOrder['side'], newest: number): readonly SlowQuote[] {
    const key = `${side} ${newest}`
    const quotes = this.#quoted.get(key) ?? this.#computeQuotes(side, newest)
    this.#quoted.set(key, quotes)
    return quotes
  }

  #computeQuotes(side: RestingOrder['side'], newest: number): readonly SlowQuote[] {
    const all = this.#in.orders
      .filter((order) => order.type === 'LIMIT' && order.side === side && order.seq <= newest)
      .filter((order) => this.#lives(order) && this.#isInBand(order))
    return this.#quotesOfTranches(side, this.#tranches(all, [], true))
  }

  #quotesOfTranches(side: RestingOrder['side'], tranches: readonly Tranche[]): SlowQuote[] {
    return tranches.flatMap(({ order, steps, opens }) => {
      const ticks = this.#ticks.filter((tick) => this.#allows({ order, steps, opens }, tick, []))
      const limit = side === 'SHORT' ? Math.min(...ticks) : Math.max(...ticks)
      return ticks.length === 0 ? [] : [{ order, steps, limit }]
    })
  }

  // ------------------------------------------------------------------ who takes part

  #lives(order: RestingOrder): boolean {
    const { asOf, excludedAccounts } = this.#in
    if (order.expiration !== 0 && order.expiration * 1000 < asOf) return false
    if (order.type === 'MARKET' && !order.forced && asOf - order.acceptedAt >= 2000) return false
    return excludedAccounts?.has(order.account) !== true
  }

  #isInBand(order: RestingOrder): boolean {
    return order.type === 'MARKET' || this.#ticks.some((tick) => this.#limitAllows(order, tick))
  }

  #limitAllows(order: RestingOrder, tick: number): boolean {
    const own = order.type === 'LIMIT' ? order.limit : this.#protectionOf(order)
    return own === null || (order.side === 'LONG' ? tick <= own : tick >= own)
  }

  #protectionOf({ seq }: RestingOrder): number | null {
    if (!this.#protected) return null
    return this.#prices.get(seq) as number
  }

  #candidates(): RestingOrder[] {
    return this.#in.orders.filter(
      (order) =>
        this.#lives(order) &&
        this.#isInBand(order) &&
        (this.#risk.closes(order) || this.#risk.openable(order) > 0),
    )
  }

  withoutSelfTrades(): { kept: RestingOrder[]; cancelled: Seq[] } {
    const all = this.#candidates()
    const inTurn = [
      ...all.filter(({ forced }) => forced).sort(bySeq),
      ...all.filter(({ forced }) => !forced).sort(bySeq),
    ]
    const kept = new Map<UserId, RestingOrder[]>()
    const cancelled: Seq[] = []
    for (const order of inTurn) {
      const own = kept.get(order.account) ?? []
      if (own.some((other) => other.side !== order.side && this.#meet(order, other)))
        cancelled.push(order.seq)
      else kept.set(order.account, [...own, order])
    }
    return { kept: [...kept.values()].flat(), cancelled: cancelled.sort((a, b) => a - b) }
  }

  /** Two orders of one account that must not both stay. `later` comes after `earlier`, or `earlier` is forced. */
  #meet(later: RestingOrder, earlier: RestingOrder): boolean {
    if (earlier.forced && later.type === 'LIMIT') {
      const price = this.#protectionOf(earlier) as number
      return later.side === 'LONG' ? later.limit >= price : later.limit <= price
    }
    if (later.type === 'MARKET' || earlier.type === 'MARKET') return later.type === earlier.type
    const [buy, sell] = later.side === 'LONG' ? [later, earlier] : [earlier, later]
    return buy.limit >= sell.limit
  }

  // ------------------------------------------------------------------ at which ticks

  /** What the order itself allows: its limit, and for a market order not to reach a limit of its own account. */
  #reaches(order: RestingOrder, tick: number, kept: readonly RestingOrder[]): boolean {
    if (!this.#limitAllows(order, tick)) return false
    if (order.type === 'LIMIT') return true
    const own = this.#ofAccount(order.account, kept).filter(
      (other) => other.side !== order.side && other.type === 'LIMIT',
    )
    return own.every((other) => (order.side === 'LONG' ? tick < other.limit : tick > other.limit))
  }

  #ofAccount(account: UserId, kept: readonly RestingOrder[]): readonly RestingOrder[] {
    if (this.#grouped.kept !== kept) {
      this.#grouped = { kept, accounts: Map.groupBy(kept, (order) => order.account) }
    }
    return this.#grouped.accounts.get(account) ?? []
  }

  #allows({ order, opens }: Tranche, tick: number, kept: readonly RestingOrder[]): boolean {
    return (
      this.#reaches(order, tick, kept) &&
      this.#risk.isSolvent(order, tick) &&
      (!opens || (this.#risk.isMargined(order, tick) && this.#risk.isReserved(order, tick)))
    )
  }

  // ------------------------------------------------------------------ how much

  #tranches(
    orders: readonly RestingOrder[],
    kept: readonly RestingOrder[],
    mayFlip: boolean,
    isFirst: (order: RestingOrder) => boolean = () => true,
  ): Tranche[] {
    const tranches: Tranche[] = []
    const left = new Map<UserId, number>()
    const reach = new Map(
      orders.map((order) => [order, this.#ticks.filter((tick) => this.#reaches(order, tick, kept)).length]),
    )
    for (const order of [...orders].sort(
      (a, b) => Number(isFirst(b)) - Number(isFirst(a)) || trancheOrder(a, b, reach),
    )) {
      const closes = this.#risk.closes(order)
      const capacity = left.get(order.account) ?? Math.abs(this.#risk.position(order).size)
      const canClose =
        closes && this.#ticks.some((tick) => this.#allows({ order, steps: 1, opens: false }, tick, kept))
      const reducing = canClose ? Math.min(order.remaining, capacity) : 0
      if (closes) left.set(order.account, capacity - reducing)
      if (reducing > 0) tranches.push({ order, steps: reducing, opens: false })
      const opening =
        closes && !mayFlip ? 0 : Math.min(order.remaining - reducing, this.#risk.openable(order))
      if (opening > 0) tranches.push({ order, steps: opening, opens: true })
    }
    return tranches
  }

  round(only: readonly RestingOrder[], kept: readonly RestingOrder[], mayFlip: boolean): Round {
    const tranches = this.#tranches(only, kept, mayFlip)
    const at = (side: RestingOrder['side'], tick: number): Tranche[] =>
      tranches.filter((tranche) => tranche.order.side === side && this.#allows(tranche, tick, kept))
    const table = this.#ticks.map((tick) => {
      const demand = total(at('LONG', tick))
      const supply = total(at('SHORT', tick))
      return { tick, demand, supply, volume: Math.min(demand, supply), surplus: Math.abs(demand - supply) }
    })
    const volume = Math.max(...table.map((row) => row.volume))
    if (volume === 0) return { ...NOTHING, tranches, kept }
    const largest = table.filter((row) => row.volume === volume)
    const least = Math.min(...largest.map((row) => row.surplus))
    const tied = largest.filter((row) => row.surplus === least)
    const limits = tranches.filter(({ order }) => order.type === 'LIMIT')
    const ends = [(tied[0] as Row).tick, (tied.at(-1) as Row).tick]
    const counts = (end: number): boolean => {
      const carriers = limits.filter(({ order }) => order.side === (end === ends[1] ? 'LONG' : 'SHORT'))
      return total(carriers.filter((tranche) => this.#allows(tranche, end, kept))) >= volume
    }
    const { tick, rule } = slowPrice({ largest, tied, counts, spec: this.#in.spec, oracle: this.#in.oracle })

    const { demand, supply } = table.find((row) => row.tick === tick) as (typeof table)[number]
    const fills = new Map([...shares(at('LONG', tick), volume), ...shares(at('SHORT', tick), volume)])
    const pairs = pairsOf(only, fills)
    return { price: tick, rule, volume, demand, supply, fills, pairs, tranches, kept }
  }

  // ------------------------------------------------------------------ remainders

  /** Market orders with steps that would have met a quote or the clearing price if they had no protection. */
  protectedRemainders(first: Round, { price, volume, fills }: Round): Seq[] {
    const unforced = first.kept.filter(({ forced }) => !forced)
    const markets = this.protections.flatMap(({ seq }) => unforced.filter((order) => order.seq === seq))
    // Limit orders that no order of the other side reaches do not use up their account's position.
    const tranches = this.#tranchesByReach(first.kept)
    return markets
      .filter((order) => {
        const left = this.#unfilled(order, tranches, fills.get(order.seq) ?? 0)
        return left.some((tranche) => this.#isKeptOut(tranche, { price, volume, tranches }, first.kept))
      })
      .map(({ seq }) => seq)
  }

  #tranchesByReach(kept: readonly RestingOrder[]): Tranche[] {
    const isFirst = (order: RestingOrder): boolean => order.type === 'MARKET' || this.#isReached(order)
    return this.#tranches(kept, kept, true, isFirst)
  }

  /** What the limit orders of one side can execute, after what the orders of the batch use of their positions. */
  #sharesBeyond(side: RestingOrder['side'], kept: readonly RestingOrder[]): readonly SlowQuote[] {
    const known = this.#quoted.get(`${side} kept`)
    if (known !== undefined) return known
    const own = this.#tranchesByReach(kept).filter(
      ({ order }) => order.side === side && order.type === 'LIMIT',
    )
    const quotes = this.#quotesOfTranches(side, own)
    this.#quoted.set(`${side} kept`, quotes)
    return quotes
  }

  #isReached(order: RestingOrder): boolean {
    const ticks = this.#ticks.filter((tick) => this.#limitAllows(order, tick))
    return ticks.some((tick) => this.#opposing(order.side).has(tick))
  }

  /** The ticks that the limit of some order of the other side allows. */
  #opposing(side: RestingOrder['side']): ReadonlySet<number> {
    const known = this.#allowed.get(side)
    if (known !== undefined) return known
    const others = this.#in.orders.filter((other) => other.side !== side && this.#lives(other))
    const ticks = new Set(
      this.#ticks.filter((tick) => others.some((other) => this.#limitAllows(other, tick))),
    )
    this.#allowed.set(side, ticks)
    return ticks
  }

  /** An order fills its reducing share first; its opening share is unfilled if any of the two is. */
  #unfilled(order: RestingOrder, tranches: readonly Tranche[], filled: number): Tranche[] {
    const own = tranches.filter((tranche) => tranche.order.seq === order.seq)
    if (filled >= total(own)) return []
    return own.filter(({ opens, steps }) => opens || filled < steps)
  }

  #isKeptOut(
    tranche: Tranche,
    { price, volume, tranches }: Pick<Round, 'price' | 'volume' | 'tranches'>,
    kept: readonly RestingOrder[],
  ): boolean {
    const { order } = tranche
    const isBuy = order.side === 'LONG'
    const limit = this.#protectionOf(order) as number
    // Only if nothing else stops the share before its protection.
    if (!this.#ticks.includes(limit) || !this.#allows(tranche, limit, kept)) return false
    const offered = this.#sharesBeyond(opposite(order), kept)
    this.#protected = false
    const isBeyond = (tick: number): boolean => (isBuy ? tick > limit : tick < limit)
    const quotes = offered.filter((quote) => isBeyond(quote.limit))
    const own = order.forced ? [] : quotes.filter((quote) => quote.order.account === order.account)
    const reached = this.#ticks.filter(
      (tick) =>
        isBeyond(tick) &&
        this.#allows(tranche, tick, []) &&
        own.every((quote) => (isBuy ? tick < quote.limit : tick > quote.limit)),
    )
    const others = quotes.filter((quote) => quote.order.account !== order.account)
    const met = reached.filter((tick) => others.some((quote) => quote.limit === tick))
    const tookPart = price !== null && !isBeyond(price)
    const isKeptOut = tookPart
      ? met.some((tick) => this.#freeSteps(order.side, tick, tranches, kept) > volume)
      : met.length > 0 || (price !== null && reached.includes(price))
    this.#protected = true
    return isKeptOut
  }

  /** The steps of one side that would trade at the tick without protections. */
  #freeSteps(
    side: RestingOrder['side'],
    tick: number,
    tranches: readonly Tranche[],
    kept: readonly RestingOrder[],
  ): number {
    const key = `${side} ${tick}`
    const known = this.#free.get(key)
    if (known !== undefined) return known
    const own = tranches.filter(({ order }) => order.side === side)
    const steps = total(own.filter((tranche) => this.#allowsFree(tranche, tick, kept)))
    this.#free.set(key, steps)
    return steps
  }

  /** Without protections. What stops before its protection stays where it is. */
  #allowsFree(tranche: Tranche, tick: number, kept: readonly RestingOrder[]): boolean {
    if (tranche.order.type === 'LIMIT') return this.#allows(tranche, tick, kept)
    this.#protected = true
    const limit = this.#protectionOf(tranche.order) as number
    const isProtected = this.#ticks.includes(limit) && this.#allows(tranche, limit, kept)
    this.#protected = false
    return this.#allows(tranche, tick, isProtected ? [] : kept)
  }

  // ------------------------------------------------------------------ too large

  largest({ tranches, price, kept }: Round): RestingOrder[] {
    const eligible = tranches
      .filter((tranche) => this.#allows(tranche, price as number, kept))
      .map(({ order }) => order)
    const ofSide = (side: RestingOrder['side']): RestingOrder[] =>
      [...new Set(eligible)]
        .filter((order) => order.side === side)
        .sort((a, b) => b.remaining - a.remaining || a.seq - b.seq)
        .slice(0, 400)
    return [...ofSide('LONG'), ...ofSide('SHORT')]
  }
}

const opposite = ({ side }: RestingOrder): RestingOrder['side'] => (side === 'LONG' ? 'SHORT' : 'LONG')
const bySeq = (a: RestingOrder, b: RestingOrder): number => a.seq - b.seq
