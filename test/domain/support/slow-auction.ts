/**
 * A second implementation of the auction, slow and simple: it evaluates every rule for every order at every
 * tick of the band, and finds pairs by lining up single steps. It shares with the product the types, the
 * band, and the settlement of positions.
 */

import type { PriceRule, Reference } from '../../../domain/auction/clearing.ts'
import type { RestingOrder } from '../../../domain/book/book.ts'
import { priceBand } from '../../../domain/market/band.ts'
import { feeOf } from '../../../domain/market/fees.ts'
import { type MarketSpec, priceOf } from '../../../domain/market/market.ts'
import { reservationPerStep } from '../../../domain/orders/reservation.ts'
import { exposureOf, isFullyCollateralised } from '../../../domain/positions/margin.ts'
import { marginOf, marginPerStep, openingBasis, type Position } from '../../../domain/positions/position.ts'
import {
  type FundingIndex,
  type Millis,
  ONE,
  type Price,
  type Seq,
  type Steps,
  type Ticks,
  type UserId,
} from '../../../domain/units.ts'
import { pairsOf, type SlowPair } from './slow-pairing.ts'

export interface SlowInput {
  readonly spec: MarketSpec
  readonly orders: readonly RestingOrder[]
  readonly positions: (account: UserId) => Position
  readonly fundingIndex: FundingIndex
  readonly oracle: Price
  readonly reference: Reference | null
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
  readonly rounds: number
}

interface Tranche {
  readonly order: RestingOrder
  readonly steps: number
  readonly opens: boolean
}

export function slowClear(input: SlowInput): SlowClearing {
  const market = new Market(input)
  const { retained, cancelled } = market.preventSelfTrades()
  let participating = retained
  let mayFlip = true
  let rounds = 0
  for (;;) {
    rounds++
    const round = market.round(participating, retained, mayFlip)
    const filled = [...round.fills.keys()]
    if (filled.length > 800 && participating.length === retained.length) participating = market.largest(round)
    else if (mayFlip && !market.fitsOnePart(round.fills)) mayFlip = false
    else return { ...round, selfTrades: cancelled, rounds }
  }
}

interface Round extends Omit<SlowClearing, 'selfTrades' | 'rounds'> {
  readonly tranches: readonly Tranche[]
  readonly retained: readonly RestingOrder[]
}

class Market {
  readonly #in: SlowInput
  readonly #ticks: number[]
  #grouped: { retained: readonly RestingOrder[]; accounts: Map<UserId, RestingOrder[]> } = {
    retained: [],
    accounts: new Map(),
  }

  constructor(input: SlowInput) {
    this.#in = input
    const { lo, hi } = priceBand(input.spec, input.oracle)
    this.#ticks = Array.from({ length: hi - lo + 1 }, (_, i) => lo + i)
  }

  // ------------------------------------------------------------------ participants

  #lives(order: RestingOrder): boolean {
    const { asOf, excludedAccounts } = this.#in
    if (order.expiration !== 0 && order.expiration * 1000 < asOf) return false
    if (order.type === 'MARKET' && asOf - order.acceptedAt >= 2000) return false
    return excludedAccounts?.has(order.account) !== true
  }

  #isInBand(order: RestingOrder): boolean {
    return this.#ticks.some((tick) => this.#limitAllows(order, tick))
  }

  #limitAllows(order: RestingOrder, tick: number): boolean {
    if (order.type === 'MARKET') return true
    return order.side === 'LONG' ? tick <= order.limit : tick >= order.limit
  }

  #position(order: RestingOrder): Position {
    return this.#in.positions(order.account)
  }

  #closes(order: RestingOrder): boolean {
    const { size } = this.#position(order)
    return order.side === 'LONG' ? size < 0 : size > 0
  }

  #openable(order: RestingOrder): number {
    const { spec, oracle, fundingIndex } = this.#in
    const position = this.#position(order)
    if (order.reduceOnly || order.forced) return 0
    if (position.size !== 0 && !isFullyCollateralised(spec, position, fundingIndex)) {
      const { equity, notional } = exposureOf(spec, position, fundingIndex, oracle)
      if (equity * ONE < spec.imr * notional) return 0
    }
    const isSell = order.side === 'SHORT' && spec.kind !== 'binary_future'
    if (isSell && order.type === 'MARKET' && priceOf(spec, order.reservedPrice) < oracle) return 0
    return isSell ? this.#coveredSell(order) : order.openable
  }

  /** The steps that the order's reservation can pay for at every tick of the band. */
  #coveredSell(order: RestingOrder): number {
    const { spec, oracle } = this.#in
    if (order.openable === 0) return 0
    const held = reservationPerStep(spec, order) * BigInt(order.openable)
    let covered = order.openable as number
    for (const tick of this.#ticks) {
      const basis = openingBasis(spec, order, tick as Ticks, oracle)
      const debit =
        marginPerStep(spec, basis, order.leverage) + feeOf(spec, tick as Ticks, 1 as Steps, spec.takerFee)
      while (debit * BigInt(covered) > held) covered--
    }
    return covered
  }

  #candidates(): RestingOrder[] {
    return this.#in.orders.filter(
      (order) =>
        this.#lives(order) && this.#isInBand(order) && (this.#closes(order) || this.#openable(order) > 0),
    )
  }

  preventSelfTrades(): { retained: RestingOrder[]; cancelled: Seq[] } {
    const all = this.#candidates()
    const inTurn = [
      ...all.filter(({ forced }) => forced).sort(bySeq),
      ...all.filter(({ forced }) => !forced).sort(bySeq),
    ]
    const retained = new Map<UserId, RestingOrder[]>()
    const cancelled: Seq[] = []
    for (const order of inTurn) {
      const own = retained.get(order.account) ?? []
      if (own.some((other) => other.side !== order.side && meet(order, other))) cancelled.push(order.seq)
      else retained.set(order.account, [...own, order])
    }
    return { retained: [...retained.values()].flat(), cancelled: cancelled.sort((a, b) => a - b) }
  }

  // ------------------------------------------------------------------ eligible ticks

  /** The order's own limit; for a market order also the limits of its own account. */
  #reaches(order: RestingOrder, tick: number, retained: readonly RestingOrder[]): boolean {
    if (!this.#limitAllows(order, tick)) return false
    if (order.type === 'LIMIT') return true
    const own = this.#ofAccount(order.account, retained).filter(
      (other) => other.side !== order.side && other.type === 'LIMIT',
    )
    return own.every((other) => (order.side === 'LONG' ? tick < other.limit : tick > other.limit))
  }

  #ofAccount(account: UserId, retained: readonly RestingOrder[]): readonly RestingOrder[] {
    if (this.#grouped.retained !== retained) {
      this.#grouped = { retained, accounts: Map.groupBy(retained, (order) => order.account) }
    }
    return this.#grouped.accounts.get(account) ?? []
  }

  #isSolvent(order: RestingOrder, tick: number): boolean {
    if (!this.#closes(order)) return true
    const { spec, fundingIndex } = this.#in
    const { size, entryNotional, ...rest } = this.#position(order)
    const count = BigInt(Math.abs(size))
    const value = (priceOf(spec, tick as Ticks) * spec.step) / ONE
    const margin = floorDiv(marginOf({ size, entryNotional, ...rest }, fundingIndex), count)
    const entry = size > 0 ? -floorDiv(-entryNotional, count) : floorDiv(entryNotional, count)
    return size > 0 ? margin + value - entry >= 0n : margin + entry - value >= 0n
  }

  /** Whether one unit opened at this price alone meets IMR at the oracle price. */
  #isMargined(order: RestingOrder, tick: number): boolean {
    const { spec, oracle } = this.#in
    const price = priceOf(spec, tick as Ticks)
    const times = BigInt(order.leverage)
    const basis = openingBasis(spec, order, tick as Ticks, oracle)
    const gain = order.side === 'LONG' ? oracle - price : price - oracle
    const stake = order.side === 'SHORT' && spec.kind === 'binary_future' ? ONE - oracle : oracle
    if (spec.kind === 'binary_future' && order.leverage === 1) return true
    return (basis + gain * times) * ONE >= spec.imr * stake * times
  }

  #isReserved(order: RestingOrder, tick: number): boolean {
    if (order.side === 'LONG') return tick <= order.reservedPrice
    return this.#in.spec.kind !== 'binary_future' || tick >= order.reservedPrice
  }

  #allows({ order, opens }: Tranche, tick: number, retained: readonly RestingOrder[]): boolean {
    return (
      this.#reaches(order, tick, retained) &&
      this.#isSolvent(order, tick) &&
      (!opens || (this.#isMargined(order, tick) && this.#isReserved(order, tick)))
    )
  }

  // ------------------------------------------------------------------ sizes

  #tranches(orders: readonly RestingOrder[], retained: readonly RestingOrder[], mayFlip: boolean): Tranche[] {
    const tranches: Tranche[] = []
    const left = new Map<UserId, number>()
    const reach = new Map(
      orders.map((order) => [
        order,
        this.#ticks.filter((tick) => this.#reaches(order, tick, retained)).length,
      ]),
    )
    for (const order of [...orders].sort((a, b) => trancheOrder(a, b, reach))) {
      const closes = this.#closes(order)
      const capacity = left.get(order.account) ?? Math.abs(this.#position(order).size)
      const canClose =
        closes && this.#ticks.some((tick) => this.#allows({ order, steps: 1, opens: false }, tick, retained))
      const reducing = canClose ? Math.min(order.remaining, capacity) : 0
      if (closes) left.set(order.account, capacity - reducing)
      if (reducing > 0) tranches.push({ order, steps: reducing, opens: false })
      const opening = closes && !mayFlip ? 0 : Math.min(order.remaining - reducing, this.#openable(order))
      if (opening > 0) tranches.push({ order, steps: opening, opens: true })
    }
    return tranches
  }

  round(participating: readonly RestingOrder[], retained: readonly RestingOrder[], mayFlip: boolean): Round {
    const tranches = this.#tranches(participating, retained, mayFlip)
    const at = (side: RestingOrder['side'], tick: number): Tranche[] =>
      tranches.filter((tranche) => tranche.order.side === side && this.#allows(tranche, tick, retained))
    const table = this.#ticks.map((tick) => {
      const demand = total(at('LONG', tick))
      const supply = total(at('SHORT', tick))
      return { tick, demand, supply, volume: Math.min(demand, supply), surplus: Math.abs(demand - supply) }
    })
    const volume = Math.max(...table.map((row) => row.volume))
    if (volume === 0) return { ...NOTHING, tranches, retained }
    const largest = table.filter((row) => row.volume === volume)
    const least = Math.min(...largest.map((row) => row.surplus))
    const tied = largest.filter((row) => row.surplus === least)
    const anchors = tied.map(({ tick }) => tick).filter((tick) => this.#isAnchor(tick, tranches, retained))
    const { tick, rule } = this.#choose(largest, tied, anchors)

    const { demand, supply } = table.find((row) => row.tick === tick) as (typeof table)[number]
    const fills = new Map([...shares(at('LONG', tick), volume), ...shares(at('SHORT', tick), volume)])
    const pairs = pairsOf(participating, fills)
    return { price: tick, rule, volume, demand, supply, fills, pairs, tranches, retained }
  }

  #choose(
    largest: readonly Row[],
    tied: readonly Row[],
    anchors: readonly number[],
  ): { tick: number; rule: PriceRule } {
    const first = (tied[0] as Row).tick
    const last = (tied.at(-1) as Row).tick
    if (largest.length === 1) return { tick: first, rule: 'volume' }
    if (tied.length === 1) return { tick: first, rule: 'surplus' }
    if (anchors.length > 0 && tied.every((row) => row.demand > row.supply)) {
      return { tick: Math.max(...anchors), rule: 'buy_pressure' }
    }
    if (anchors.length > 0 && tied.every((row) => row.demand < row.supply)) {
      return { tick: Math.min(...anchors), rule: 'sell_pressure' }
    }
    return { tick: Math.max(first, Math.min(last, this.#reference())), rule: 'reference' }
  }

  #reference(): number {
    const { reference, asOf, oracle, spec } = this.#in
    if (reference !== null && asOf - reference.at < 60_000 && this.#ticks.includes(reference.price)) {
      return reference.price
    }
    const below = Number(oracle / spec.tick)
    const rest = oracle - BigInt(below) * spec.tick
    return rest * 2n > spec.tick ? below + 1 : below
  }

  /** The last tick of a limit order's tranche. */
  #isAnchor(tick: number, tranches: readonly Tranche[], retained: readonly RestingOrder[]): boolean {
    return tranches.some((tranche) => {
      if (tranche.order.type === 'MARKET') return false
      const ticks = this.#ticks.filter((each) => this.#allows(tranche, each, retained))
      return tick === (tranche.order.side === 'LONG' ? Math.max(...ticks) : Math.min(...ticks))
    })
  }

  // ------------------------------------------------------------------ batches that exceed a limit

  largest({ tranches, price, retained }: Round): RestingOrder[] {
    const eligible = tranches
      .filter((tranche) => this.#allows(tranche, price as number, retained))
      .map(({ order }) => order)
    const ofSide = (side: RestingOrder['side']): RestingOrder[] =>
      [...new Set(eligible)]
        .filter((order) => order.side === side)
        .sort((a, b) => b.remaining - a.remaining || a.seq - b.seq)
        .slice(0, 400)
    return [...ofSide('LONG'), ...ofSide('SHORT')]
  }

  fitsOnePart(fills: ReadonlyMap<Seq, number>): boolean {
    const filled = this.#in.orders.filter(({ seq }) => fills.has(seq))
    const partly = filled.filter(({ seq, remaining }) => (fills.get(seq) as number) < remaining)
    const accounts = new Set(filled.map(({ account }) => account))
    return filled.length <= 200 && filled.length + partly.length + accounts.size + 2 <= 400
  }
}

interface Row {
  readonly tick: number
  readonly demand: number
  readonly supply: number
}

const NOTHING = {
  price: null,
  rule: null,
  volume: 0,
  demand: 0,
  supply: 0,
  fills: new Map<Seq, number>(),
  pairs: [],
} as const

const bySeq = (a: RestingOrder, b: RestingOrder): number => a.seq - b.seq
const total = (tranches: readonly Tranche[]): number => tranches.reduce((sum, { steps }) => sum + steps, 0)
const floorDiv = (a: bigint, b: bigint): bigint => (a >= 0n ? a / b : -((-a + b - 1n) / b))

/** `reach`: the number of ticks of the band at which each order's own limit allows a trade. */
function trancheOrder(a: RestingOrder, b: RestingOrder, reach: ReadonlyMap<RestingOrder, number>): number {
  return (
    Number(b.forced) - Number(a.forced) ||
    (reach.get(b) as number) - (reach.get(a) as number) ||
    Number(b.type === 'MARKET') - Number(a.type === 'MARKET') ||
    Number(b.reduceOnly) - Number(a.reduceOnly) ||
    a.seq - b.seq
  )
}

/** Whether two orders of one account could meet. `later` comes after `earlier`, or `earlier` is forced. */
function meet(later: RestingOrder, earlier: RestingOrder): boolean {
  if (earlier.forced) return true
  if (later.type === 'MARKET' || earlier.type === 'MARKET') return later.type === earlier.type
  const [buy, sell] = later.side === 'LONG' ? [later, earlier] : [earlier, later]
  return buy.limit >= sell.limit
}

/** Rounds down, then assigns single steps to the largest remainder until the volume is reached. */
function shares(tranches: readonly Tranche[], volume: number): Map<Seq, number> {
  const claims = new Map<Seq, number>()
  for (const { order, steps } of tranches) claims.set(order.seq, (claims.get(order.seq) ?? 0) + steps)
  const all = BigInt([...claims.values()].reduce((sum, steps) => sum + steps, 0))
  const rows = [...claims].map(([seq, steps]) => {
    const exact = BigInt(volume) * BigInt(steps)
    return { seq, got: Number(exact / all), remainder: exact % all }
  })
  while (rows.reduce((sum, { got }) => sum + got, 0) < volume) {
    const next = rows.reduce((best, row) =>
      row.remainder > best.remainder || (row.remainder === best.remainder && row.seq < best.seq) ? row : best,
    )
    next.got++
    next.remainder = -1n
  }
  return new Map(rows.filter(({ got }) => got > 0).map(({ seq, got }) => [seq, got]))
}
