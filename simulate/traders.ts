/** The order flow: market makers around the oracle price, and traders who open, close and cancel at random. */

import type { MarketSpec } from '../domain/market/market.ts'
import type { Side } from '../domain/orders/order.ts'
import type { Steps, Ticks, UserId } from '../domain/units.ts'
import { type ActionMoment, BACKSTOP } from './chain.ts'
import type { SimulatedMarket } from './market.ts'
import type { Random } from './random.ts'

const MAKERS = 4
const LEVELS = 3
/** Probability that a maker replaces its quotes in a step. */
const REQUOTING = 0.4

export interface Mood {
  /** Probability that a new position is a long. */
  readonly bulls: number
  /** Size of a maker's quotes relative to an average order. */
  readonly depth: number
  /** Share of the traders that act in a step. */
  readonly activity: number
  /** Probability that a trader with a position closes it instead of anything else. */
  readonly closing: number
}

export class Traders {
  readonly makers: readonly UserId[]
  readonly traders: readonly UserId[]
  readonly #random: Random
  readonly #capital: number

  /** `capital`: of an average trader, in USDM. */
  constructor(random: Random, accounts: number, capital: number) {
    this.#random = random
    this.#capital = capital
    this.makers = Array.from({ length: MAKERS }, (_, at) => (BACKSTOP + 1 + at) as UserId)
    this.traders = Array.from({ length: accounts }, (_, at) => (BACKSTOP + 1 + MAKERS + at) as UserId)
  }

  /** First deposits in wei: a few large traders, many small ones. */
  deposits(): Map<UserId, bigint> {
    const wei = (usdm: number): bigint => BigInt(Math.round(usdm * 1e6)) * 10n ** 12n
    const total = this.#capital * this.traders.length
    return new Map([
      ...this.makers.map((account) => [account, wei((total * 2) / MAKERS)] as const),
      ...this.traders.map(
        (account) => [account, wei(this.#capital * Math.exp(this.#random.normal()))] as const,
      ),
    ])
  }

  act(market: SimulatedMarket, moment: ActionMoment, mood: Mood): void {
    // The quotes of other traders are stale meanwhile.
    for (const maker of this.makers)
      if (this.#random.chance(REQUOTING)) this.#quote(market, maker, moment, mood.depth)
    const acting = Math.ceil(this.traders.length * mood.activity)
    const actors = mood.depth > 0 ? this.traders : [...this.makers, ...this.traders]
    for (let at = 0; at < acting; at++) this.#trade(market, this.#random.pick(actors), moment, mood)
    this.#trimBackstop(market, moment)
  }

  /** Replaces the maker's quotes by a ladder on both sides. */
  #quote(market: SimulatedMarket, account: UserId, moment: ActionMoment, depth: number): void {
    const { spec } = market
    if (market.isTouched(account) || market.liquidations.running.has(account)) return
    market.cancelAll(account)
    const width = spec.kind === 'binary_future' ? 0.01 : 0.001
    const quantity = this.#steps(spec, (this.#capital * depth * this.traders.length) / 40, moment)
    if (quantity === 0) return
    for (let level = 1; level <= LEVELS; level++) {
      for (const side of ['LONG', 'SHORT'] as const) {
        const distance = width * level * (0.5 + this.#random())
        const limit = limitAt(spec, moment, side === 'LONG' ? -distance : distance)
        market.place(
          { account, side, type: 'LIMIT', limit, quantity, leverage: 2, reduceOnly: false },
          moment,
        )
      }
    }
  }

  #trade(market: SimulatedMarket, account: UserId, moment: ActionMoment, { bulls, closing }: Mood): void {
    const random = this.#random
    const { spec } = market
    const { size } = market.positions.of(account)
    if (random.chance(0.1)) {
      if (!market.liquidations.running.has(account)) market.cancelAll(account)
      return
    }
    if (size !== 0 && random.chance(closing)) {
      const quantity = Math.max(1, Math.ceil(Math.abs(size) * random.pick([0.3, 1, 1]))) as Steps
      this.#send(market, moment, {
        account,
        side: size > 0 ? 'SHORT' : 'LONG',
        quantity,
        leverage: 1,
        reduceOnly: true,
      })
      return
    }
    const leverage = random.chance(0.5) ? spec.maxLeverage : random.between(1, spec.maxLeverage)
    const margin = (Number(market.available(account)) / 1e18) * (0.2 + 0.75 * random())
    const quantity = this.#steps(spec, margin * leverage * 0.95, moment)
    if (quantity === 0) return
    const side = random.chance(bulls) ? 'LONG' : 'SHORT'
    this.#send(market, moment, { account, side, quantity, leverage, reduceOnly: false })
  }

  #send(
    market: SimulatedMarket,
    moment: ActionMoment,
    order: { account: UserId; side: Side; quantity: Steps; leverage: number; reduceOnly: boolean },
  ): void {
    const isLimit = this.#random.chance(0.4)
    const distance = 0.004 * this.#random.normal() * (market.spec.kind === 'binary_future' ? 5 : 1)
    const limit = isLimit ? limitAt(market.spec, moment, distance) : (0 as Ticks)
    market.place({ ...order, type: isLimit ? 'LIMIT' : 'MARKET', limit }, moment)
  }

  /** The backstop closes a tenth of what it has inherited per step. */
  #trimBackstop(market: SimulatedMarket, moment: ActionMoment): void {
    const { size } = market.positions.of(BACKSTOP)
    if (size === 0 || market.isTouched(BACKSTOP) || market.liquidations.running.has(BACKSTOP)) return
    market.cancelAll(BACKSTOP)
    const quantity = Math.ceil(Math.abs(size) / 10) as Steps
    const side = size > 0 ? 'SHORT' : 'LONG'
    market.place(
      { account: BACKSTOP, side, type: 'MARKET', limit: 0 as Ticks, quantity, leverage: 1, reduceOnly: true },
      moment,
    )
  }

  #steps(spec: MarketSpec, notional: number, { oracle }: ActionMoment): Steps {
    const perStep = Number(spec.step * oracle) / 1e36
    return Math.min(spec.maxQuantity, Math.floor(notional / perStep)) as Steps
  }
}

/** The tick at a relative distance from the oracle price. */
function limitAt(spec: MarketSpec, { oracle }: ActionMoment, distance: number): Ticks {
  const ticks = Math.round((Number(oracle) / Number(spec.tick)) * (1 + distance))
  const top = spec.kind === 'binary_future' ? Number(10n ** 18n / spec.tick) - 1 : Number.MAX_SAFE_INTEGER
  return Math.max(1, Math.min(top, ticks)) as Ticks
}
