/**
 * Accounts that trade in a perpetual, a future and a binary future at once, on arbitrary orders, prices and delays of the chain: what is matched
 * can settle, for margin, free balance and pool.
 */
import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import type { MarketSpec } from '../../domain/market/market.ts'
import type { FundingIndex, Millis, Price, Quote, Steps, Ticks, UserId } from '../../domain/units.ts'
import { BACKSTOP, Bank } from '../../simulate/chain.ts'
import { checkBooks, checkReservations } from '../../simulate/exchange-laws.ts'
import { SimulatedMarket } from '../../simulate/market.ts'
import { RULES } from '../../simulate/rules.ts'
import { Tally } from '../../simulate/tally.ts'
import type { Turn } from '../../simulate/turn.ts'
import { binary, future, perpetual } from '../support/markets.ts'

const ONE = 10n ** 18n
const SPECS: readonly MarketSpec[] = [perpetual, future, binary]
const FIRST = [100, 100, 0.5]
const ACCOUNTS = 5
const CAPITAL = 1_000n * ONE

interface Placing {
  readonly op: 'place'
  readonly account: number
  readonly isBuy: boolean
  /** Distance of a limit from the oracle price in thousandths; null for a market order. */
  readonly distance: number | null
  /** Notional, relative to the capital of an account at the leverage, in hundredths. */
  readonly size: number
  readonly leverage: number
  readonly reduceOnly: boolean
}

type Command = { readonly market: number } & (
  | Placing
  /** Limit orders of two accounts that cross. */
  | { readonly op: 'deal'; readonly account: number; readonly size: number; readonly leverage: number }
  /** Of the whole position, by a limit order deep in the band. */
  | { readonly op: 'close'; readonly account: number }
  | { readonly op: 'move'; readonly percent: number }
  | { readonly op: 'fund'; readonly thousandths: number }
  | { readonly op: 'cancel'; readonly account: number }
  | { readonly op: 'batch'; readonly liquidates: boolean }
  | { readonly op: 'mine' }
  /** A gap, after which all close against a new position, and nothing is liquidated. */
  | { readonly op: 'rush'; readonly percent: number }
)

const account = fc.integer({ min: 0, max: ACCOUNTS - 1 })
const market = fc.integer({ min: 0, max: SPECS.length - 1 })

const placing = fc.record({
  ...{ op: fc.constant('place' as const), market, account, isBuy: fc.boolean() },
  distance: fc.option(fc.integer({ min: -40, max: 40 }), { freq: 3 }),
  ...{ size: fc.integer({ min: 1, max: 95 }), leverage: fc.integer({ min: 1, max: 20 }) },
  reduceOnly: fc.boolean(),
})

const deal = fc.record({
  ...{ op: fc.constant('deal' as const), market, account, size: fc.integer({ min: 5, max: 60 }) },
  leverage: fc.integer({ min: 1, max: 20 }),
})

const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 6, arbitrary: deal },
  {
    weight: 1,
    arbitrary: fc.record({
      op: fc.constant('rush' as const),
      market,
      percent: fc.constantFrom(-40, -30, 30, 40),
    }),
  },
  { weight: 5, arbitrary: fc.record({ op: fc.constant('close' as const), market, account }) },
  { weight: 10, arbitrary: placing },
  {
    weight: 5,
    arbitrary: fc.record({ op: fc.constant('batch' as const), market, liquidates: fc.boolean() }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      op: fc.constant('move' as const),
      market,
      percent: fc.integer({ min: -25, max: 25 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('mine' as const), market }) },
  {
    weight: 1,
    arbitrary: fc.record({
      op: fc.constant('fund' as const),
      market,
      thousandths: fc.integer({ min: -5, max: 5 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('cancel' as const), market, account }) },
)

class Markets {
  readonly tally = new Tally()
  readonly #bank = new Bank()
  readonly #markets: readonly SimulatedMarket[]
  readonly #prices = FIRST.map((price) => BigInt(price * 1000) * (ONE / 1000n))
  readonly #indices = FIRST.map(() => 0n)
  readonly #deposited: bigint
  #number = 0

  constructor() {
    for (let at = 0; at < ACCOUNTS; at++) this.#bank.free.set(userOf(at), CAPITAL)
    this.#bank.free.set(BACKSTOP, CAPITAL / 2n)
    this.#deposited = CAPITAL * BigInt(ACCOUNTS) + CAPITAL / 2n
    const shared = {
      bank: this.#bank,
      reservedOf: (user: UserId) => this.#markets.reduce((sum, each) => sum + each.reservedOf(user), 0n),
    }
    const conduct = { rules: RULES, tally: this.tally, recorder: null }
    this.#markets = SPECS.map((spec) => new SimulatedMarket(spec, shared, (CAPITAL * 5n) as Quote, conduct))
  }

  apply(next: Command): void {
    this.#number++
    const at = next.market
    const own = this.#markets[at] as SimulatedMarket
    if (next.op === 'place') own.place(this.#order(next, at), this.#turn(at))
    else if (next.op === 'deal') this.#deal(own, next)
    else if (next.op === 'rush') this.#rush(own, next)
    else if (next.op === 'close') this.#close(own, userOf(next.account), at)
    else if (next.op === 'cancel') this.#cancel(own, userOf(next.account))
    else if (next.op === 'mine') own.execute(Number.POSITIVE_INFINITY)
    else if (next.op === 'batch') own.step(this.#turn(at), !next.liquidates)
    else if (next.op === 'move') this.#move(at, next.percent)
    else if (SPECS[at]?.kind === 'perpetual') this.#fund(at, next.thousandths)
    this.check()
  }

  mineAll(): void {
    for (const each of this.#markets) each.execute(Number.POSITIVE_INFINITY)
    this.check()
  }

  check(): void {
    const { tally } = this
    checkBooks(this.#markets, this.#bank, (at) => this.#turn(at), { tally, deposited: this.#deposited })
    checkReservations(this.#markets, this.#bank, tally)
    for (const each of this.#markets) each.check()
  }

  #deal(
    own: SimulatedMarket,
    { market: at, account: by, size, leverage }: Extract<Command, { op: 'deal' }>,
  ): void {
    const shared = { op: 'place' as const, market: at, size, leverage, reduceOnly: false }
    own.place(this.#order({ ...shared, account: by, isBuy: true, distance: 3 }, at), this.#turn(at))
    const other = { ...shared, account: (by + 1) % ACCOUNTS, isBuy: false, distance: -3 }
    own.place(this.#order(other, at), this.#turn(at))
  }

  #rush(own: SimulatedMarket, { market: at, percent }: Extract<Command, { op: 'rush' }>): void {
    this.#move(at, percent)
    const users = Array.from({ length: ACCOUNTS }, (_, user) => user)
    for (const user of users) this.#close(own, userOf(user), at)
    const quote = { op: 'place' as const, market: at, size: 60, leverage: 5, reduceOnly: false }
    for (const user of users.filter((each) => own.positions.of(userOf(each)).size === 0))
      for (const isBuy of [true, false])
        own.place(
          this.#order({ ...quote, account: user, isBuy, distance: isBuy ? -1 : 1 }, at),
          this.#turn(at),
        )
    own.step(this.#turn(at), true)
  }

  #close(own: SimulatedMarket, user: UserId, at: number): void {
    const { size } = own.positions.of(user)
    if (size === 0 || own.liquidations.running.has(user)) return
    const distance = size > 0 ? -40 : 40
    const placing = {
      op: 'place' as const,
      account: user - BACKSTOP - 1,
      size: 1,
      leverage: 1,
      reduceOnly: true,
    }
    const order = this.#order({ ...placing, isBuy: size < 0, distance }, at)
    own.place({ ...order, quantity: Math.abs(size) as Steps }, this.#turn(at))
  }

  #cancel(own: SimulatedMarket, user: UserId): void {
    if (!own.liquidations.running.has(user)) own.cancelAll(user)
  }

  #move(at: number, percent: number): void {
    const moved = ((this.#prices[at] as bigint) * BigInt(100 + percent)) / 100n
    this.#prices[at] = SPECS[at]?.kind === 'binary_future' && moved >= ONE ? (ONE * 99n) / 100n : moved
  }

  #fund(at: number, thousandths: number): void {
    const perStep = ((SPECS[at] as MarketSpec).step * (this.#prices[at] as bigint)) / ONE
    this.#indices[at] = (this.#indices[at] as bigint) + (perStep * BigInt(thousandths)) / 1000n + 1n
  }

  #order({ account: by, isBuy, distance, size, leverage, reduceOnly }: Placing, at: number) {
    const spec = SPECS[at] as MarketSpec
    const oracle = this.#prices[at] as bigint
    const multiple = Math.min(leverage, spec.maxLeverage)
    const notional = (CAPITAL * BigInt(size * multiple)) / 100n
    const quantity = Number((notional * ONE) / (spec.step * oracle)) as Steps
    const tick = Number((oracle * BigInt(1000 + (distance ?? 0))) / (1000n * spec.tick))
    const top = spec.kind === 'binary_future' ? 999 : Number.MAX_SAFE_INTEGER
    return {
      ...{ account: userOf(by), quantity, leverage: multiple, reduceOnly },
      side: isBuy ? ('LONG' as const) : ('SHORT' as const),
      type: distance === null ? ('MARKET' as const) : ('LIMIT' as const),
      limit: (distance === null ? 0 : Math.max(1, Math.min(top, tick))) as Ticks,
    }
  }

  #turn(at: number): Turn {
    const asOf = (1_700_000_000_000 + this.#number * 200) as Millis
    const prices = { oracle: this.#prices[at] as Price, index: this.#indices[at] as FundingIndex }
    return { number: this.#number, lag: 0, asOf, ...prices }
  }
}

const userOf = (at: number): UserId => (BACKSTOP + 1 + at) as UserId

describe('accounts in several markets', () => {
  it('when any orders meet at any prices and are mined at any time, everything that is matched settles', () => {
    const seen = { parts: 0, liquidations: 0, unaffordable: 0, poolShort: 0, deleveraged: 0 }
    fc.assert(
      fc.property(fc.array(command, { minLength: 60, maxLength: 120 }), (commands) => {
        const markets = new Markets()
        for (const next of commands) markets.apply(next)
        markets.mineAll()
        expect(markets.tally.violations).to.deep.equal([])
        seen.parts += markets.tally.checks.get('accepted')?.checked ?? 0
        seen.liquidations += markets.tally.liquidations
        seen.unaffordable += markets.tally.unaffordable
        seen.poolShort += markets.tally.poolShort
        seen.deleveraged += markets.tally.deleveragedLegs
      }),
      { numRuns: 200, seed: 15 },
    )
    for (const [what, count] of Object.entries(seen)) expect(count, what).to.be.greaterThan(0)
  })
})
