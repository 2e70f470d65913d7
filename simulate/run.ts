/** Runs one scenario: traders build positions, the path begins, and the ladder ends what it has to. Every rule is checked at every step. */

import { equityOf, isLiquidatable } from '../domain/positions/margin.ts'
import { isPastGrace } from '../domain/risk/bank-pause.ts'
import type { FundingIndex, Millis, Price, Quote, Seconds, UserId } from '../domain/units.ts'
import { BACKSTOP, Bank } from './chain.ts'
import { SimulatedMarket } from './market.ts'
import { type Random, randomOf } from './random.ts'
import { drawScenario, firstPrice, type PathStep, type Scenario, type ScenarioName } from './scenarios.ts'
import { Tally } from './tally.ts'
import { type Mood, Traders } from './traders.ts'
import type { Turn } from './turn.ts'

/** Steps before the path, in which positions are built, and after it, in which the ladder ends. */
const WARM_UP = 9
const CALM = 35
const CAPITAL = 10_000
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
  /** Recorded prices relative to the first one; null for generated paths. */
  readonly recorded: readonly number[] | null
}

export function runScenario(name: ScenarioName, { seed, accounts, recorded }: RunTerms): Outcome {
  const random = randomOf(Math.imul(seed, 2_654_435_761) ^ hashOf(name))
  const drawn = drawScenario(name, random)
  return new Run(recorded === null ? drawn : withPath(drawn, recorded), random, accounts).run()
}

const hashOf = (name: string): number =>
  [...name].reduce((hash, char) => Math.imul(hash, 31) + char.charCodeAt(0), 7)

/** The scenario on recorded prices. A silent oracle stays silent, a binary market keeps its path. */
function withPath(scenario: Scenario, recorded: readonly number[]): Scenario {
  const paths = scenario.markets.map(({ kind }, at) => {
    const own = scenario.paths[at] as readonly PathStep[]
    if (kind === 'binary_future')
      return recorded.map((_, step) => own[Math.min(step, own.length - 1)] as PathStep)
    return recorded.map((price, step) => (own[step] === null ? null : price))
  })
  return { ...scenario, paths }
}

class Run {
  readonly #scenario: Scenario
  readonly #random: Random
  readonly #traders: Traders
  readonly #bank = new Bank()
  readonly #markets: readonly SimulatedMarket[]
  readonly #tally = new Tally()
  readonly #deposited: bigint
  /** First balance of the backstop. */
  readonly #capital: bigint
  readonly #indices: bigint[]
  readonly #prices: Price[]
  #now = 1_700_000_000_000
  #number = 0
  #worstShortfall = 0n
  #openInterest = 0n

  constructor(scenario: Scenario, random: Random, accounts: number) {
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
      (spec) => new SimulatedMarket(spec, shared, (this.#capital * 10n) as Quote, this.#tally),
    )
    this.#indices = scenario.markets.map(() => 0n)
    this.#prices = scenario.markets.map((spec) => priceAt(firstPrice(spec)))
  }

  run(): Outcome {
    const { paths, bulls, depth } = this.#scenario
    const length = paths[0]?.length ?? 0
    const warm = { bulls, depth: depth.before, activity: 0.4, closing: 0.1 }
    for (let step = 0; step < WARM_UP; step++)
      this.#step(
        paths.map(() => 1),
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
    this.#checkEnd()
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
    // What is in flight when the pause begins is executed before it: voids are not simulated.
    for (const market of this.#markets) market.execute(isPaused ? Number.POSITIVE_INFINITY : this.#number)
    if (isPaused) this.#bank.pauseEndsAt = Math.ceil(this.#now / 1000) as Seconds
    const isStalled = stall !== null && step !== null && step >= stall.from && step < stall.to
    for (const [at, market] of this.#markets.entries()) {
      const price = relative[at] as PathStep
      if (price === null || isPaused) continue
      this.#prices[at] = priceAt(price * firstPrice(market.spec))
      this.#accrue(at)
      const turn = this.#turn(at)
      this.#traders.act(market, turn, isStalled ? RUN_ON_POOL : mood)
      market.step(turn, isStalled)
      if (!isStalled) this.#checkLadder(market, turn)
    }
    this.#checkBooks()
    const shortfall = this.#shortfall()
    if (shortfall > this.#worstShortfall) this.#worstShortfall = shortfall
  }

  /** Executes what is in flight and decides on the result, until the ladder sends nothing more. */
  #endLiquidations(): void {
    for (let round = 0; round < LAST_ROUNDS; round++) {
      for (const [at, market] of this.#markets.entries()) {
        market.execute(Number.POSITIVE_INFINITY)
        market.liquidations.decide(this.#turn(at))
      }
      if (this.#markets.every(({ isQuiet }) => isQuiet)) return
    }
    this.#tally.violate(`the ladder has not ended after ${LAST_ROUNDS} rounds`)
  }

  #accrue(at: number): void {
    const { markets, funding } = this.#scenario
    const spec = markets[at] as (typeof markets)[number]
    if (spec.kind !== 'perpetual') return
    const perStep = (spec.step * (this.#prices[at] as bigint)) / 10n ** 18n
    const share = BigInt(Math.round((2 * this.#random() - 1) * funding * 1e9))
    this.#indices[at] = (this.#indices[at] as bigint) + (perStep * share) / 10n ** 9n
  }

  #turn(at: number): Turn {
    return {
      ...{ number: this.#number, lag: this.#scenario.lag, asOf: this.#now as Millis },
      ...{ oracle: this.#prices[at] as Price, index: this.#indices[at] as FundingIndex },
    }
  }

  // ------------------------------------------------------------------ checks

  /** Every position below the threshold is being liquidated. Computed without the scanner. */
  #checkLadder(market: SimulatedMarket, { index, oracle }: Turn): void {
    const { running } = market.liquidations
    for (const [account, position] of market.positions) {
      if (!isLiquidatable(market.spec, position, index, oracle)) continue
      if (!running.has(account) && !market.isTouched(account) && !this.#wasJustMatched(market, account))
        this.#tally.violate(`account ${account} is below the threshold and not liquidated`)
    }
  }

  /** The auction after the ladder can leave an account below the threshold only by closing. */
  #wasJustMatched = (market: SimulatedMarket, account: UserId): boolean =>
    !market.isQuiet && market.chain.positions.of(account) !== market.positions.of(account)

  #checkBooks(): void {
    let total = this.#bank.fees
    for (const free of this.#bank.free.values()) {
      if (free < 0n) this.#tally.violate(`a free balance is ${free}`)
      total += free
    }
    for (const market of this.#markets) {
      total += this.#bank.pools.get(market.spec.marketId) ?? 0n
      for (const mismatch of market.chain.mismatches()) this.#tally.violate(mismatch)
    }
    if (total !== this.#deposited)
      this.#tally.violate(`${this.#deposited} were deposited, ${total} are there`)
    if (this.#number % RESERVATIONS_EVERY !== 0) return
    for (const account of this.#bank.free.keys()) {
      const reserved = this.#markets.reduce((sum, market) => sum + market.reservedOf(account), 0n)
      if (reserved > this.#bank.freeOf(account))
        this.#tally.violate(`account ${account} reserves more than it has`)
    }
  }

  /** After the ladder no equity is negative that is not a recorded deficit, and nothing is left to liquidate in time. */
  #checkEnd(): void {
    for (const [at, market] of this.#markets.entries()) {
      const { index, oracle, asOf } = this.#turn(at)
      const uncovered = new Set(market.liquidations.uncovered)
      for (const [account, position] of market.positions) {
        const equity = equityOf(market.spec, position, index, oracle)
        if (equity >= 0n || uncovered.has(account) || market.isTouched(account)) continue
        if (!isLiquidatable(market.spec, position, index, oracle)) continue
        if (isPastGrace(this.#bank.pauseEndsAt, asOf, equity))
          this.#tally.violate(`account ${account} keeps a negative equity of ${equity}`)
      }
    }
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
