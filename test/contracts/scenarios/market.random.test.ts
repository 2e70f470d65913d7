/**
 * Random markets: fills, forced fills, funding, adjustments, backstop, deleveraging and the end, in any order. domain/ predicts each
 * step; the chain must agree on every wei and on every error, and the events must rebuild the result.
 */
import { expect } from 'chai'
import type { Wallet } from 'ethers'
import type { RemoveMode } from '../../../domain/positions/adjustment.ts'
import { exposureOf, ratioOf } from '../../../domain/positions/margin.ts'
import { fundingBounds } from '../../../domain/prices/funding.ts'
import type { Address, Millis, Quote } from '../../../domain/units.ts'
import {
  addressOf,
  binaryExchange,
  chain,
  type Exchange,
  futureExchange,
  nextSecond,
  perpetualExchange,
} from '../../support/exchange.ts'
import { e18 } from '../../support/markets.ts'
import { randomOf } from '../../support/random.ts'
import { audit } from '../support/audit.ts'
import { DifferentialRunner } from '../support/differential-runner.ts'
import { randomFills } from '../support/random-batch.ts'
import { INSOLVENCY_WINDOW, pass, withBackstop } from '../support/risk.ts'
import { atTicks } from '../support/twin.ts'

const STEPS = 120
/** The bank is paused and unpaused before this step. */
const PAUSE_STEP = 60
/** Salts of random batches start above the sequential ones. */
const FIRST_BATCH = 20_000
const HOUR = 3_600_000

const LADDER = ['forced', 'forced', 'inherit', 'deleverage'] as const
const KINDS = ['batch', 'deal', 'deal', 'margin', 'margin', 'leverage', ...LADDER] as const
type Kind = (typeof KINDS)[number] | 'fund'

class RandomTrading {
  readonly runner: DifferentialRunner
  readonly #random: (end: number) => number
  readonly #middle: number
  #ticks: number
  #turn = 0

  constructor(runner: DifferentialRunner, middle: number, seed: number) {
    this.runner = runner
    this.#random = randomOf(seed)
    this.#middle = middle
    this.#ticks = middle
  }

  get #exchange(): Exchange {
    return this.runner.exchange
  }

  #pick<Item>(items: readonly Item[]): Item {
    return items[this.#random(items.length)] as Item
  }

  /** Advances by seconds, sometimes minutes; the price moves by up to 10 %. */
  async step(): Promise<void> {
    this.#turn++
    await pass(this.#exchange, (1 + this.#random(10)) * (this.#random(6) === 0 ? 60 : 1))
    const reach = Math.trunc(this.#ticks / this.#pick([10, 20, 40]))
    const wandered = this.#ticks - reach + this.#random(2 * reach + 1)
    this.#ticks = Math.min(Math.max(wandered, Math.trunc(this.#middle / 2)), Math.trunc(this.#middle * 1.5))
    const kinds: readonly Kind[] =
      this.#exchange.spec.kind === 'perpetual' ? [...KINDS, 'fund', 'fund'] : KINDS
    await this.#take(this.#pick(kinds))
  }

  #take(kind: Kind): Promise<unknown> {
    const { users } = this.#exchange
    const ticks = this.#ticks
    if (kind === 'batch') {
      return this.runner.settle(
        ticks,
        randomFills(this.#exchange, ticks, FIRST_BATCH + this.#turn, this.#random),
      )
    }
    if (kind === 'deal') return this.#deal(ticks)
    if (kind === 'margin') return this.#margin(ticks, this.#needy(ticks))
    if (kind === 'leverage') return this.#leverage(ticks, this.#pick(users))
    if (kind === 'fund') return this.#fund(ticks)
    if (kind === 'forced') return this.#forced(ticks)
    if (kind === 'inherit') return this.runner.inherit(ticks, this.#weak(ticks))
    return this.#deleverage(ticks)
  }

  /** A trade at the highest leverage, which liquidation, inheritance and deleveraging need. */
  #deal(ticks: number): Promise<unknown> {
    const { users, spec } = this.#exchange
    const [buyer, seller] = [this.#pick(users), this.#pick(users)]
    const fill = 50 + this.#random(500)
    const leverage = spec.maxLeverage
    const self = buyer === seller
    return this.runner.settle(ticks, [
      { by: buyer, side: 'LONG', fill, leverage },
      { by: seller, side: 'SHORT', fill, leverage: self ? leverage : 1 + this.#random(leverage) },
    ])
  }

  /** Mostly the account with the lowest ratio, sometimes any holder including the backstop. */
  #weak(ticks: number): { readonly address: Address } {
    const { twin, holders } = this.runner
    const { index } = twin.books
    const oracle = atTicks(twin.spec, ticks)
    if (this.#random(6) === 0) return { address: this.#pick(holders) }
    const ratios = holders.map((address) => {
      const ratio = ratioOf(exposureOf(twin.spec, twin.positionOf(address), index, oracle))
      return { address, ratio: ratio ?? e18('100') }
    })
    return ratios.reduce((worst, each) => (each.ratio < worst.ratio ? each : worst))
  }

  /** Any user, or the user with the lowest ratio. */
  #needy(ticks: number): Wallet {
    const { users } = this.#exchange
    const { address } = this.#weak(ticks)
    const weak = users.find((user) => addressOf(user) === address)
    return weak !== undefined && this.#random(3) === 0 ? weak : this.#pick(users)
  }

  async #forced(ticks: number): Promise<unknown> {
    const { address } = this.#weak(ticks)
    const by = this.#exchange.users.find((user) => addressOf(user) === address)
    const { size } = this.runner.twin.positionOf(address)
    if (by === undefined || size === 0) return null
    const [side, against] = size > 0 ? (['SHORT', 'LONG'] as const) : (['LONG', 'SHORT'] as const)
    const held = Math.abs(size)
    // The whole position, a piece, or one step too many.
    const fill = this.#pick([held, held, Math.ceil(held / 5), held + 1])
    const other = this.#pick(this.#exchange.users.filter((user) => user !== by))
    return this.runner.settle(
      ticks,
      [
        { by, side, fill, forced: BigInt(this.#turn), taker: fill },
        { by: other, side: against, fill, leverage: 2, taker: 0 },
      ],
      'forced',
    )
  }

  async #deleverage(ticks: number): Promise<unknown> {
    const weak = this.#weak(ticks)
    const asOf = ((await nextSecond(this.#exchange)) * 1000) as Millis
    const moment = { asOf, oracle: atTicks(this.runner.twin.spec, ticks) }
    const ranked = this.runner.twin.ranked(weak.address, moment).map(({ account }) => ({ address: account }))
    // In order, with one counterparty that may not qualify; sometimes in the wrong order.
    const listed = this.#random(5) === 0 ? ranked.reverse() : ranked
    const named = [{ address: this.#pick(this.runner.holders) }, ...listed].filter(
      ({ address }, at, all) => all.findIndex((each) => each.address === address) === at,
    )
    const legs = named.map((of) => ({ of, steps: 1 + this.#random(this.#random(2) === 0 ? 40 : 2_000) }))
    return this.runner.deleverage(ticks, weak, legs)
  }

  async #fund(ticks: number): Promise<unknown> {
    const { spec, books } = this.runner.twin
    const asOf = ((await nextSecond(this.#exchange)) * 1000) as Millis
    const { lowest, highest } = fundingBounds(spec, books.running, atTicks(spec, ticks), asOf)
    const rate = this.#pick([lowest, highest, highest, lowest - 1n, highest + 1n, 0n])
    return this.runner.fund(ticks, rate, this.#pick([HOUR, HOUR, this.#random(HOUR), 0, HOUR + 1]))
  }

  #margin(ticks: number, by: Wallet): Promise<unknown> {
    const { entryNotional } = this.runner.twin.positionOf(addressOf(by))
    const sign = this.#random(3) === 0 ? 1n : -1n
    const scale = entryNotional / BigInt(1 + this.#random(this.#pick([20, 2_000])))
    const amount = (sign * (scale + BigInt(this.#random(3)))) as Quote
    const removeMode: RemoveMode = this.#pick(['exact', 'up_to'])
    const minAmount = (this.#random(3) === 0 ? scale / 2n : 0n) as Quote
    return this.runner.adjustMargin(ticks, by, { amount, removeMode, minAmount })
  }

  #leverage(ticks: number, by: Wallet): Promise<unknown> {
    const { entryNotional } = this.runner.twin.positionOf(addressOf(by))
    const leverage = this.#random(this.#exchange.spec.maxLeverage + 2)
    const scale = entryNotional / BigInt(1 + this.#random(10))
    const maxMarginIn = (this.#random(2) === 0 ? 10n ** 30n : scale) as Quote
    const minMarginOut = (this.#random(3) === 0 ? scale / 4n : 0n) as Quote
    return this.runner.adjustLeverage(ticks, by, { leverage, maxMarginIn, minMarginOut })
  }

  /** 0 or 1 in a binary market, else the last price. */
  #finalTicks(): number {
    if (this.#exchange.spec.kind !== 'binary_future') return this.#ticks
    return this.#random(2) === 0 ? 0 : 1_000
  }

  /** Frozen or finalized, deficits reported in two calls, partly covered, claimed in random order, and claimed again. */
  async end(isFrozen: boolean): Promise<void> {
    const { runner } = this
    const shuffled = [...runner.holders].sort(() => this.#random(3) - 1)
    await (isFrozen ? runner.freeze() : runner.finalize(this.#finalTicks()))
    await runner.reportInsolvent(shuffled.slice(2))
    if (this.#random(2) === 0) await runner.cover(BigInt(1 + this.#random(1e9)))
    await runner.reportInsolvent(shuffled)
    await pass(this.#exchange, INSOLVENCY_WINDOW)
    for (const holder of [...shuffled, ...runner.holders]) await runner.claim(holder)
  }
}

const cases = [
  { fixture: perpetualExchange, middle: 1_000, cap: '150', seeds: [1, 2, 8] },
  { fixture: futureExchange, middle: 2_000, cap: '5000', seeds: [4, 5] },
  { fixture: binaryExchange, middle: 400, cap: '150', seeds: [6, 7] },
]

const outcomes = (kind: string, ...results: string[]) => results.map((result) => `${kind} ${result}`)
const OUTCOMES: readonly string[] = [
  ...outcomes('batch', 'done', 'MarginInsufficient', 'ProceedsNegative'),
  ...outcomes('forced', 'done', 'NotLiquidatable', 'ProceedsNegative', 'ReduceOnlyExceeded'),
  ...outcomes('inherit', 'done', 'NotLiquidatable', 'BackstopItself'),
  ...outcomes('inherit', 'NO_BACKSTOP', 'CAP_EXCEEDED', 'FREE_BALANCE_SHORT'),
  ...outcomes('deleverage', 'done', 'NotLiquidatable', 'BackstopFirst', 'CounterpartyOutOfOrder'),
  ...outcomes('fund', 'done', 'FundingRateOutOfRange', 'FundingValidityInvalid'),
  ...outcomes('margin', 'done', 'NoPosition', 'NothingMoves', 'RemoveModeInvalid', 'RemovalTooLarge'),
  ...outcomes('margin', 'AmountBelowMinimum', 'AdditionInsufficient'),
  ...outcomes('leverage', 'done', 'LeverageInvalid', 'MarginInTooLarge', 'MarginOutTooSmall'),
  ...outcomes('freeze', 'done'),
  ...outcomes('finalize', 'done'),
  ...outcomes('report', 'done'),
  ...outcomes('cover', 'done'),
  ...outcomes('claim', 'done', 'NothingToClaim'),
]

describe('random markets in domain/ and on the chain', () => {
  /** Over all runs. */
  const seen = new Map<string, number>()

  for (const { fixture, middle, cap: most, seeds } of cases) {
    for (const seed of seeds) {
      it(`${fixture.name}, seed ${seed}: agree to the wei after each of ${STEPS} steps and at the end`, async () => {
        const exchange = await (await chain()).networkHelpers.loadFixture(fixture)
        const cap = e18(most) as Quote
        // The first run of each kind starts without a backstop.
        const hasBackstop = seed !== seeds[0]
        if (hasBackstop) await withBackstop(exchange, cap, cap / 20n)
        const runner = await DifferentialRunner.of(exchange, hasBackstop ? cap : null)
        const play = new RandomTrading(runner, middle, seed)
        for (let step = 1; step <= STEPS; step++) {
          if (step === PAUSE_STEP) await runner.pauseBriefly()
          await play.step()
          if (step % 30 === 0) await audit(exchange)
        }
        await play.end(seed === seeds[0])
        await audit(exchange)
        for (const [what, count] of runner.seen) seen.set(what, (seen.get(what) ?? 0) + count)
      }).timeout(120_000)
    }
  }

  it('have reached every possible outcome', () => {
    expect(
      OUTCOMES.filter((outcome) => !seen.has(outcome)),
      [...seen].join(' · '),
    ).to.deep.equal([])
  })
})
