/**
 * Searches for the worst price that hostile accounts can cause for a market order: random plans of orders and
 * cancels over several batches, improved by hill climbing. Every plan is cleared by the auction itself.
 */

import { clearAndMatch } from '../../../domain/auction/batch.ts'
import { Book, type RestingOrder } from '../../../domain/book/book.ts'
import { type Band, priceBand, tickNearest } from '../../../domain/market/band.ts'
import type { MarketSpec } from '../../../domain/market/market.ts'
import { DEFAULT_PRICE_PROTECTION } from '../../../domain/market/price-protection.ts'
import { reservedPriceOf } from '../../../domain/orders/reservation.ts'
import { FLAT, type Position } from '../../../domain/positions/position.ts'
import {
  type FundingIndex,
  type Millis,
  ONE,
  type Price,
  type Quote,
  type Seconds,
  type Seq,
  type Steps,
  type Ticks,
  type UserId,
} from '../../../domain/units.ts'
import { binary, future, perpetual, price, rate } from '../../support/markets.ts'
import { slowClear } from './slow-auction.ts'
import type { SlowProtection } from './slow-protection.ts'

export interface AttackMarket {
  readonly spec: MarketSpec
  readonly oracle: Price
}

/** One market of each kind; a step is half of the smallest order. */
export const ATTACK_MARKETS: readonly AttackMarket[] = [
  { spec: { ...perpetual, tick: (ONE / 2n) as Price, minQuantity: 2 as Steps }, oracle: price('100') },
  {
    spec: { ...future, minQuantity: 2 as Steps, mtbLong: rate('0.2'), mtbShort: rate('0.2') },
    oracle: price('50'),
  },
  {
    spec: { ...binary, tick: rate('0.005') as bigint as Price, minQuantity: 2 as Steps },
    oracle: price('0.5'),
  },
]

type Random = (below: number) => number
type Side = RestingOrder['side']

/** One act of a hostile account before a batch. */
interface Act {
  readonly kind: 'limit' | 'market' | 'triggered' | 'cancel'
  readonly account: UserId
  readonly side: Side
  /** Ticks from the oracle price. */
  readonly offset: number
  readonly steps: number
  readonly leverage: number
  readonly reduceOnly: boolean
}

interface Plan {
  /** Resting orders of honest accounts: offset from the oracle price in ticks, steps; sells are above 0. */
  readonly honest: readonly (readonly [number, number])[]
  readonly victim: { readonly side: Side; readonly steps: number; readonly triggered: boolean }
  /** The acts before each batch. The victim's order joins the last one. */
  readonly batches: readonly (readonly Act[])[]
}

export interface AttackResult {
  readonly plan: Plan
  /** What the victim lost against `shown`, as a share of it; in a binary market as a distance in price. */
  readonly loss: number
  /** The same against the worse of `shown` and the oracle price; negative if the price was better. */
  readonly excess: number
  readonly price: number
  /** The price against the orders that stood before and still do, else the best of them, else the oracle price. */
  readonly shown: number
}

/** Honest books: deep, thin, dust in front, one side empty, dust alone, empty. */
const HONEST: readonly Plan['honest'][] = [
  [
    [1, 20],
    [2, 20],
    [4, 20],
    [-1, 20],
    [-2, 20],
    [-4, 20],
  ],
  [
    [1, 4],
    [6, 10],
    [-1, 4],
    [-6, 10],
  ],
  [
    [1, 1],
    [3, 12],
    [-1, 1],
    [-3, 12],
  ],
  [[2, 12]],
  [[-2, 12]],
  [
    [1, 1],
    [-1, 1],
  ],
  [],
]

const VICTIM = 1 as UserId
const HOSTILE = [11, 12, 13] as const
const BATCHES = 3
const ACTS = 4

const pick = <T>(random: Random, of: readonly T[]): T => of[random(of.length)] as T
const anySide = (random: Random): Side => pick(random, ['LONG', 'SHORT'] as const)

function anyAct(random: Random, reach: number): Act {
  return {
    kind: pick(random, ['limit', 'limit', 'limit', 'market', 'triggered', 'cancel'] as const),
    account: pick(random, HOSTILE) as number as UserId,
    side: anySide(random),
    offset: random(2 * reach + 1) - reach,
    steps: pick(random, [1, 2, 3, 5, 10, 12, 30, 100]),
    leverage: pick(random, [1, 1, 2, 3, 5]),
    reduceOnly: random(8) === 0,
  }
}

function anyPlan(random: Random, reach: number, triggered: boolean): Plan {
  const acts = () => Array.from({ length: random(ACTS + 1) }, () => anyAct(random, reach))
  return {
    honest: pick(random, HONEST),
    victim: { side: anySide(random), steps: pick(random, [2, 5, 10, 30, 60]), triggered },
    batches: Array.from({ length: BATCHES }, acts),
  }
}

/** The plan with one act added, removed or replaced, or with a victim of another size. */
function mutated(random: Random, reach: number, plan: Plan): Plan {
  const at = random(BATCHES)
  const acts = [...(plan.batches[at] as readonly Act[])]
  const where = random(acts.length + 1)
  const change = random(4)
  if (change === 0) return { ...plan, victim: { ...plan.victim, steps: 1 + random(60) } }
  if (change === 1) acts.splice(where, 1)
  else if (change === 2 && acts.length < ACTS) acts.splice(where, 0, anyAct(random, reach))
  else if (where < acts.length) {
    const act = acts[where] as Act
    acts[where] = random(2) === 0 ? anyAct(random, reach) : { ...act, offset: act.offset + random(5) - 2 }
  }
  return { ...plan, batches: plan.batches.map((batch, i) => (i === at ? acts : batch)) }
}

/** One market, batch by batch, with the orders and positions that the matches leave. */
class AttackedMarket {
  readonly #market: AttackMarket
  readonly #band: Band
  readonly #middle: Ticks
  #orders = new Map<Seq, RestingOrder>()
  readonly #positions = new Map<UserId, Position>()
  #seq = 0
  #standing = 0

  constructor(market: AttackMarket) {
    this.#market = market
    this.#band = priceBand(market.spec, market.oracle)
    this.#middle = tickNearest(market.spec, market.oracle)
  }

  place(
    fields: Pick<Act, 'kind' | 'account' | 'side' | 'steps' | 'offset' | 'leverage' | 'reduceOnly'>,
  ): Seq {
    const { spec } = this.#market
    const type = fields.kind === 'limit' ? 'LIMIT' : 'MARKET'
    const limit = (type === 'LIMIT' ? Math.max(1, this.#middle + fields.offset) : 0) as Ticks
    const { side } = fields
    const seq = ++this.#seq as Seq
    this.#orders.set(seq, {
      ...{ seq, account: fields.account, side, type, limit, remaining: fields.steps as Steps },
      ...{ leverage: Math.min(fields.leverage, spec.maxLeverage), reduceOnly: fields.reduceOnly },
      ...{ forced: false, triggered: fields.kind === 'triggered', widenings: 0 },
      openable: (fields.reduceOnly ? 0 : fields.steps) as Steps,
      reservedPrice: reservedPriceOf(spec, { side, type, price: limit, trigger: 0 as Ticks }, this.#band),
      ...{ expiration: 0 as Seconds, acceptedAt: 0 as Millis },
    })
    return seq
  }

  /** Applies the acts of a hostile account; a cancel removes its oldest order of the side. */
  act(act: Act): void {
    if (act.kind !== 'cancel') this.place(act)
    else {
      const own = [...this.#orders.values()].find(
        ({ account, side }) => account === act.account && side === act.side,
      )
      if (own !== undefined) this.#orders.delete(own.seq)
    }
  }

  /** The auction's input, with the orders as a list. */
  input() {
    const { spec, oracle } = this.#market
    return {
      ...{ spec, oracle, asOf: 1 as Millis, fundingIndex: 0n as FundingIndex },
      positions: (account: UserId) => this.#positions.get(account) ?? FLAT,
      orders: [...this.#orders.values()],
      standingSeq: this.#standing as Seq,
      priceProtection: DEFAULT_PRICE_PROTECTION[spec.kind],
      // The search is for prices; positions from before it belong to no pool.
      pool: (10n ** 40n) as Quote,
    }
  }

  clear(): void {
    const { orders, ...input } = this.input()
    const { clearing, matched } = clearAndMatch({ ...input, book: Book.of(orders) })
    for (const { seq, fill, opening, remaining } of clearing.fills) {
      const order = this.#orders.get(seq) as RestingOrder
      const openable = Math.max(0, Math.min(order.openable - opening, order.remaining - fill)) as Steps
      if (remaining === 0) this.#orders.delete(seq)
      else this.#orders.set(seq, { ...order, remaining, openable })
    }
    for (const { seq } of clearing.cancels) this.#orders.delete(seq)
    for (const [account, position] of matched?.positions ?? []) this.#positions.set(account, position)
    this.#standing = this.#seq
  }

  get seqs(): Set<Seq> {
    return new Set(this.#orders.keys())
  }

  /** Removes the other orders. */
  keep(which: (seq: Seq) => boolean): void {
    this.#orders = new Map([...this.#orders].filter(([seq]) => which(seq)))
  }
}

/**
 * Runs the plan. Throws if the victim trades beyond the protection that the slow auction computes, or beyond
 * two widths from the worse of the shown price and the oracle price. Null if the victim does not trade.
 */
export function attack(market: AttackMarket, plan: Plan): AttackResult | null {
  const run = new AttackedMarket(market)
  for (const [at, [offset, steps]] of plan.honest.entries()) {
    const side = offset > 0 ? 'SHORT' : 'LONG'
    const account = (2 + at) as UserId
    run.place({ kind: 'limit', account, side, offset, steps, leverage: 1, reduceOnly: false })
  }
  run.clear()
  for (const acts of plan.batches.slice(0, -1)) {
    for (const act of acts) run.act(act)
    run.clear()
  }
  const stood = run.seqs
  const { side, steps, triggered } = plan.victim
  const order = { side, steps, kind: triggered ? ('triggered' as const) : ('market' as const) }
  const victim = run.place({ ...order, account: VICTIM, offset: 0, leverage: 1, reduceOnly: false })
  for (const act of plan.batches.at(-1) as readonly Act[]) run.act(act)
  const { price: paid } = priceFor(run, victim)
  if (paid === null) return null
  run.keep((seq) => stood.has(seq) || seq === victim)
  const standing = priceFor(run, victim)
  const shown = standing.price ?? standing.best ?? tickNearest(market.spec, market.oracle)
  const bound = outermost(market, plan.victim, shown)
  const sign = side === 'LONG' ? 1 : -1
  if (sign * paid > sign * bound) throw new Error(`price ${paid} is beyond ${bound}; shown was ${shown}`)
  const fair = worseOf(market, side, shown)
  const unit = (from: number): number =>
    market.spec.kind === 'binary_future' ? Number(ONE / market.spec.tick) : from
  const lossFrom = (from: number): number => (sign * (paid - from)) / unit(from)
  return { plan, price: paid, shown, loss: lossFrom(shown), excess: lossFrom(fair) }
}

/** The worse of the shown price and the oracle price, in ticks. */
function worseOf({ spec, oracle }: AttackMarket, side: Side, shown: number): number {
  const oracleTicks = Number(oracle) / Number(spec.tick)
  return side === 'LONG' ? Math.max(shown, oracleTicks) : Math.min(shown, oracleTicks)
}

/** The worst of the shown price and the oracle price, moved by the width twice: no protection lies beyond. */
function outermost(market: AttackMarket, { side, triggered }: Plan['victim'], shown: number): number {
  const { spec } = market
  const width = (triggered ? 3 : 1) * (Number(DEFAULT_PRICE_PROTECTION[spec.kind]) / 1e18)
  const sign = side === 'LONG' ? 1 : -1
  const from = worseOf(market, side, shown)
  if (spec.kind === 'binary_future') return from + (sign * 2 * width * 1e18) / Number(spec.tick) + sign / 1e6
  return from * (1 + sign * width) ** 2 + sign / 1e6
}

/** The price at which the order trades now, null if it does not, and its best standing quote. */
function priceFor(run: AttackedMarket, seq: Seq): { price: number | null; best: number | null } {
  const { orders, ...input } = run.input()
  const { clearing } = clearAndMatch({ ...input, book: Book.of(orders) })
  const { protections } = slowClear({ ...input, orders })
  const { best, price: bound } = protections.find((one) => one.seq === seq) as SlowProtection
  if (clearing.price === null || clearing.fills.every((fill) => fill.seq !== seq))
    return { price: null, best }
  const { side } = orders.find((order) => order.seq === seq) as RestingOrder
  if (side === 'LONG' ? clearing.price > bound : clearing.price < bound) {
    throw new Error(`order ${seq} trades at ${clearing.price}, beyond its protection ${bound}`)
  }
  return { price: clearing.price, best }
}

export interface SearchOptions {
  readonly starts: number
  readonly climbs: number
  /** Whether the victim's order is a triggered one. */
  readonly triggered: boolean
  /** What the search makes as large as it can. */
  readonly measure: 'loss' | 'excess'
}

/** The worst plan that `starts` random plans lead to, each improved `climbs` times at most. */
export function searchAttack(
  market: AttackMarket,
  random: Random,
  { starts, climbs, triggered, measure }: SearchOptions,
): AttackResult | null {
  const { lo, hi } = priceBand(market.spec, market.oracle)
  const reach = Math.ceil((hi - lo) / 2) + 2
  let worst: AttackResult | null = null
  for (let start = 0; start < starts; start++) {
    let best = attack(market, anyPlan(random, reach, triggered))
    for (let climb = 0; climb < climbs && best !== null; climb++) {
      const next = attack(market, mutated(random, reach, best.plan))
      if (next !== null && next[measure] >= best[measure]) best = next
    }
    if (best !== null && (worst === null || best[measure] > worst[measure])) worst = best
  }
  return worst
}
