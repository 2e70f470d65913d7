/** Runs one scenario: traders build positions, the path begins, and the ladder ends what it has to. Every rule is checked at every step. */

import { equityOf } from '../domain/positions/margin.ts'
import type { FundingIndex, Millis, Price, Quote, Seconds, UserId } from '../domain/units.ts'
import { BACKSTOP, Bank } from './chain.ts'
import { checkBooks, checkEnd, checkReservations } from './exchange-laws.ts'
import { FundingRates } from './funding-rates.ts'
import { SimulatedMarket } from './market.ts'
import { type Random, randomOf } from './random.ts'
import type { Recorded } from './recorded.ts'
import type { Recorder } from './recorder.ts'
import { RULES, type Rules } from './rules.ts'
import {
  atChainPace,
  drawScenario,
  firstPrice,
  type PathStep,
  type Scenario,
  type ScenarioName,
} from './scenarios.ts'
import { Tally } from './tally.ts'
import { type Mood, Traders } from './traders.ts'
import type { Turn } from './turn.ts'

/** Steps before the path, in which positions are built, and after it, in which the ladder ends. */
const WARM_UP = 9
const CALM = 35
const CAPITAL = 10_000
/** Steps between two funding rates. */
const FUNDING_EVERY = 10
/** Rounds in which the ladder must have done all that it can at the last price. */
const LAST_ROUNDS = 200
/** Steps between two checks of all reservations, which take as long as everything else. */
const RESERVATIONS_EVERY = 8
/** While nothing is liquidated, all who can close do, market makers included. */
const RUN_ON_POOL: Mood = { bulls: 0.5, depth: 0, activity: 2, closing: 0.95 }

export interface Outcome {
  readonly tally: Tally
  /** Wei of negative equity that no step of the ladder covers: recorded deficits. */
  readonly deficits: bigint
  /** The largest sum of negative equities after a step. */
  readonly worstShortfall: bigint
  /** Change of the backstop's free balance and equity. */
  readonly backstop: bigint
  readonly openInterest: bigint
}

export interface RunTerms {
  readonly seed: number
  readonly accounts: number
  /** Rules of the keeper that a test breaks. */
  readonly broken?: Partial<Rules>
  /** Records every executed action, so that it can be repeated on the contracts. */
  readonly recorder?: Recorder
}

/** `what`: a scenario by name, or a recording of which the seed chooses an excerpt. */
export function runScenario(
  what: ScenarioName | Recorded,
  { seed, accounts, broken = {}, recorder }: RunTerms,
): Outcome {
  const name = typeof what === 'string' ? what : what.name
  const random = randomOf(Math.imul(seed, 2_654_435_761) ^ hashOf(name))
  const drawn = drawScenario(what, random)
  const scenario = recorder === undefined ? drawn : atChainPace(drawn)
  return new Run(scenario, random, accounts, { ...RULES, ...broken }, recorder ?? null).run()
}

const hashOf = (name: string): number =>
  [...name].reduce((hash, char) => Math.imul(hash, 31) + char.charCodeAt(0), 7)

class Run {
  readonly #scenario: Scenario
  readonly #recorder: Recorder | null
  readonly #random: Random
  readonly #traders: Traders
  readonly #bank = new Bank()
  readonly #markets: readonly SimulatedMarket[]
  readonly #tally = new Tally()
  readonly #deposited: bigint
  /** First balance of the backstop. */
  readonly #capital: bigint
  readonly #indices: bigint[]
  readonly #rates = new FundingRates()
  readonly #prices: Price[]
  #now = 1_700_000_000_000
  #number = 0
  #worstShortfall = 0n
  #openInterest = 0n

  constructor(scenario: Scenario, random: Random, accounts: number, rules: Rules, recorder: Recorder | null) {
    this.#recorder = recorder
    this.#scenario = scenario
    this.#random = random
    this.#traders = new Traders(random, accounts, CAPITAL)
    for (const [account, amount] of this.#traders.deposits()) this.#bank.free.set(account, amount)
    const thousandths = BigInt(Math.round(scenario.backstop * 1000))
    this.#capital = BigInt(accounts * CAPITAL) * 10n ** 15n * thousandths
    this.#bank.free.set(BACKSTOP, this.#capital)
    this.#deposited = [...this.#bank.free.values()].reduce((sum, each) => sum + each, 0n)
    const shared = {
      bank: this.#bank,
      reservedOf: (account: UserId) =>
        this.#markets.reduce((sum, market) => sum + market.reservedOf(account), 0n),
    }
    this.#markets = scenario.markets.map(
      (spec) =>
        new SimulatedMarket(spec, shared, (this.#capital * 10n) as Quote, {
          rules,
          recorder,
          tally: this.#tally,
        }),
    )
    recorder?.started(this.#markets, this.#bank.free, (this.#capital * 10n) as Quote)
    this.#indices = scenario.markets.map(() => 0n)
    this.#prices = scenario.markets.map((spec) => priceAt(scenario.start * firstPrice(spec)))
  }

  run(): Outcome {
    const { paths, bulls, depth, start } = this.#scenario
    const length = paths[0]?.length ?? 0
    const warm = { bulls, depth: depth.before, activity: 0.4, closing: 0.1 }
    for (let step = 0; step < WARM_UP; step++)
      this.#step(
        paths.map(() => start),
        warm,
        null,
      )
    this.#openInterest = this.#sumOpen()
    const busy = { bulls: 0.5, depth: depth.after, activity: 0.1, closing: 0.5 }
    for (let step = 0; step < length; step++)
      this.#step(
        paths.map((path) => path[step] as PathStep),
        busy,
        step,
      )
    const calm = { bulls: 0.5, depth: depth.before, activity: 0.05, closing: 0.3 }
    const last = paths.map((path) => path.findLast((price) => price !== null) as number)
    for (let step = 0; step < CALM; step++) this.#step(last, calm, null)
    for (let step = 0; step < 5; step++) this.#step(last, { ...calm, activity: 0, depth: 0 }, null)
    this.#endLiquidations()
    checkEnd(this.#markets, this.#bank, (at) => this.#turn(at), this.#tally)
    return {
      ...{ tally: this.#tally, deficits: this.#shortfall(), worstShortfall: this.#worstShortfall },
      ...{ backstop: this.#backstopChange(), openInterest: this.#openInterest },
    }
  }

  #step(relative: readonly PathStep[], mood: Mood, step: number | null): void {
    this.#now += this.#scenario.interval
    this.#number++
    const { pause, stall } = this.#scenario
    const isPaused = pause !== null && step !== null && step >= pause.from && step < pause.to
    // Actions in flight at the start of the pause are executed before it, because voids are not simulated.
    for (const market of this.#markets) market.execute(isPaused ? Number.POSITIVE_INFINITY : this.#number)
    if (isPaused) this.#pause()
    const isStalled = stall !== null && step !== null && step >= stall.from && step < stall.to
    for (const [at, market] of this.#markets.entries()) {
      const price = relative[at] as PathStep
      if (price === null || isPaused) continue
      this.#prices[at] = priceAt(price * firstPrice(market.spec))
      this.#accrue(at)
      const turn = this.#turn(at)
      this.#setFunding(at, turn)
      this.#traders.act(market, turn, isStalled ? RUN_ON_POOL : mood)
      market.step(turn, isStalled)
    }
    this.#checkStep()
    const shortfall = this.#shortfall()
    if (shortfall > this.#worstShortfall) this.#worstShortfall = shortfall
  }

  /** Executes what is in flight and decides on the result, until the ladder sends nothing more. */
  #endLiquidations(): void {
    for (let round = 0; round < LAST_ROUNDS; round++) {
      for (const [at, market] of this.#markets.entries()) {
        market.execute(Number.POSITIVE_INFINITY)
        market.chain.report(this.#turn(at))
        market.liquidations.decide(this.#turn(at))
      }
      if (this.#markets.every(({ isQuiet }) => isQuiet)) return
    }
    this.#tally.check('deficits', false, () => `the ladder has not ended after ${LAST_ROUNDS} rounds`)
  }

  #pause(): void {
    const endsAt = Math.ceil(this.#now / 1000) as Seconds
    this.#bank.pauseEndsAt = endsAt
    this.#recorder?.paused(this.#now as Millis, endsAt)
  }

  #accrue(at: number): void {
    const { markets, funding } = this.#scenario
    const spec = markets[at] as (typeof markets)[number]
    if (spec.kind !== 'perpetual') return
    if (this.#recorder !== null) {
      this.#indices[at] = this.#rates.indexAt(at, this.#now)
      return
    }
    const perStep = (spec.step * (this.#prices[at] as bigint)) / 10n ** 18n
    const share = BigInt(Math.round((2 * this.#random() - 1) * funding * 1e9))
    this.#indices[at] = (this.#indices[at] as bigint) + (perStep * share) / 10n ** 9n
  }

  /** On the contracts the index moves by rates that actions set. */
  #setFunding(at: number, turn: Turn): void {
    const market = this.#markets[at] as SimulatedMarket
    if (this.#recorder === null || market.spec.kind !== 'perpetual' || this.#number % FUNDING_EVERY !== 1)
      return
    const update = this.#rates.next(at, market.spec, turn, this.#random)
    const { asOf, oracle, index } = turn
    market.send({ kind: 'fund', asOf, oracle, index, ...update }, turn, {})
  }

  #turn(at: number): Turn {
    return {
      ...{ number: this.#number, lag: this.#scenario.lag, asOf: this.#now as Millis },
      ...{ oracle: this.#prices[at] as Price, index: this.#indices[at] as FundingIndex },
    }
  }

  #checkStep(): void {
    checkBooks(this.#markets, this.#bank, (at) => this.#turn(at), {
      tally: this.#tally,
      deposited: this.#deposited,
    })
    if (this.#number % RESERVATIONS_EVERY !== 0) return
    checkReservations(this.#markets, this.#bank, this.#tally)
    for (const market of this.#markets) market.check()
  }

  #shortfall(): bigint {
    let sum = 0n
    for (const [at, market] of this.#markets.entries()) {
      const { index, oracle } = this.#turn(at)
      for (const position of market.chain.positions.values()) {
        const equity = equityOf(market.spec, position, index, oracle)
        if (equity < 0n) sum -= equity
      }
    }
    return sum
  }

  #sumOpen(): bigint {
    let sum = 0n
    for (const [at, market] of this.#markets.entries())
      for (const { size } of market.positions.values())
        if (size > 0) sum += (BigInt(size) * market.spec.step * (this.#prices[at] as bigint)) / 10n ** 18n
    return sum
  }

  #backstopChange(): bigint {
    let now = this.#bank.freeOf(BACKSTOP)
    for (const [at, market] of this.#markets.entries()) {
      const { index, oracle } = this.#turn(at)
      now += equityOf(market.spec, market.chain.positions.of(BACKSTOP), index, oracle)
    }
    return now - this.#capital
  }
}

const priceAt = (value: number): Price => (BigInt(Math.round(value * 1e9)) * 10n ** 9n) as Price
