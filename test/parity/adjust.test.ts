/** Funding, adjustments and fills in any order: the chain and the domain agree on every wei and on every refusal. */
import { expect } from 'chai'
import { type Adjusted, adjustLeverage, adjustMargin, type RemoveMode } from '../../domain/adjust.ts'
import { accrue, type FundingRate, fundingBounds, NO_RATE, setFunding } from '../../domain/funding.ts'
import type { MarketSpec } from '../../domain/market.ts'
import { foldMargin, type Position } from '../../domain/position.ts'
import {
  abs,
  type FundingIndex,
  type HourlyFunding,
  type Millis,
  type Price,
  type Quote,
  type Steps,
} from '../../domain/units.ts'
import type { Verdict } from '../../domain/verdict.ts'
import {
  adjustLeverage as adjustLeverageOnChain,
  adjustMargin as adjustMarginOnChain,
  setFunding as setFundingOnChain,
} from '../support/adjust.ts'
import { audit } from '../support/audit.ts'
import { nameOfError } from '../support/errors.ts'
import {
  binaryExchange,
  chain,
  type Exchange,
  futureExchange,
  nextSecond,
  perpetualExchange,
  wallet,
} from '../support/exchange.ts'
import { randomOf } from '../support/parity.ts'
import { pass, trade } from '../support/risk.ts'

const STEPS = 60
const PEOPLE = ['alice', 'bob', 'carol'].map(wallet)

/** The contract's word for each refusal of the domain. */
const ERRORS: Readonly<Record<string, string>> = {
  NO_POSITION: 'NoPosition',
  NOTHING_MOVES: 'NothingMoves',
  REMOVE_MODE: 'RemoveModeInvalid',
  ABOVE_REMOVABLE: 'RemovalTooLarge',
  BELOW_MINIMUM: 'AmountBelowMinimum',
  ADDITION_INSUFFICIENT: 'AdditionInsufficient',
  LEVERAGE_OUT_OF_RANGE: 'LeverageInvalid',
  MARGIN_IN_ABOVE_MAXIMUM: 'MarginInTooLarge',
  MARGIN_OUT_BELOW_MINIMUM: 'MarginOutTooSmall',
  RATE_OUT_OF_RANGE: 'FundingRateOutOfRange',
  VALIDITY: 'FundingValidityInvalid',
  NOT_PERPETUAL: 'NotPerpetual',
}

/** `done`, or the error by name. */
async function outcomeOf(call: Promise<unknown>): Promise<string> {
  return call.then(
    () => 'done',
    (error: unknown) => nameOfError(error) ?? (error as Error).message,
  )
}

const expectedOf = (verdict: Verdict<unknown, { readonly code: string }>): string =>
  verdict.ok ? 'done' : (ERRORS[verdict.refusal.code] ?? verdict.refusal.code)

/** One run over one market. */
class Run {
  readonly seen = new Map<string, number>()
  readonly #exchange: Exchange
  readonly #random: (end: number) => number
  #price: bigint
  #running: FundingRate = NO_RATE
  #index = 0n as FundingIndex
  #last = 0 as Millis

  constructor(exchange: Exchange, seed: number) {
    this.#exchange = exchange
    this.#random = randomOf(seed)
    this.#price = BigInt(exchange.spec.kind === 'binary_future' ? 600 : 100_000) * exchange.spec.tick
  }

  get #spec(): MarketSpec {
    return this.#exchange.spec
  }

  async step(): Promise<void> {
    await pass(this.#exchange, (1 + this.#random(40)) * (this.#random(4) === 0 ? 60 : 1))
    this.#walk()
    const asOf = ((await nextSecond(this.#exchange)) * 1000) as Millis
    const kind = this.#random(5)
    if (kind === 0) await this.#trade(asOf)
    else if (kind === 1) await this.#fund(asOf)
    else if (kind === 2) await this.#leverage(asOf)
    else await this.#margin(asOf)
  }

  /** The price moves by up to 3 %, in ticks. */
  #walk(): void {
    const { tick, kind } = this.#spec
    const moved = (this.#price * BigInt(970 + this.#random(61))) / 1000n
    const top = kind === 'binary_future' ? 900n * tick : moved
    const bounded = moved > top ? top : moved
    this.#price = (bounded / tick) * tick
  }

  #note(what: string): void {
    this.seen.set(what, (this.seen.get(what) ?? 0) + 1)
  }

  #someone() {
    return PEOPLE[this.#random(PEOPLE.length)]!
  }

  async #positionOf(account: string): Promise<Position> {
    const held = await this.#exchange.trader.position(account)
    const size = Number(held.size) as Steps
    expect((await this.#exchange.trader.lastReference()).fundingIndex).to.equal(this.#index)
    return {
      size,
      entryNotional: held.entryNotional as Quote,
      foldedMargin: foldMargin(held.margin, size, this.#index),
      leverage: Number(held.leverage),
    }
  }

  #indexAt(asOf: Millis): FundingIndex {
    return accrue(this.#index, this.#running, this.#last, asOf)
  }

  async #trade(asOf: Millis): Promise<void> {
    const [buyer, seller] = [this.#someone(), this.#someone()]
    if (buyer === seller) return
    const price = Number(this.#price / this.#spec.tick)
    const deal = { steps: 10 + this.#random(1000), price, leverage: 1 + this.#random(5) }
    const outcome = await outcomeOf(trade(this.#exchange, buyer, seller, deal))
    this.#note(`trade ${outcome}`)
    if (outcome === 'done') this.#acted(asOf)
  }

  #acted(asOf: Millis): void {
    this.#index = this.#indexAt(asOf)
    this.#last = asOf
  }

  async #fund(asOf: Millis): Promise<void> {
    const oracle = this.#price as Price
    const { lowest, highest } = fundingBounds(this.#spec, this.#running, oracle, asOf)
    const rate = [lowest, highest, lowest - 1n, highest + 1n, 0n][this.#random(5)] as HourlyFunding
    const validUntil = (asOf + this.#random(3_700_000)) as Millis
    const context = { running: this.#running, index: this.#indexAt(asOf), oracle, sessionEnd: null }
    const verdict = setFunding(this.#spec, { asOf, rate, validUntil }, context)
    const outcome = await outcomeOf(
      setFundingOnChain(this.#exchange, { price: oracle, rate, asOf, validUntil }),
    )
    expect(outcome).to.equal(expectedOf(verdict))
    this.#note(`fund ${outcome}`)
    if (!verdict.ok) return
    this.#acted(asOf)
    this.#running = verdict.value
  }

  async #margin(asOf: Millis): Promise<void> {
    const by = this.#someone()
    const index = this.#indexAt(asOf)
    const before = await this.#positionOf(by.address)
    const terms = { fundingIndex: index, oracle: this.#price as Price }
    const sign = this.#random(3) === 0 ? 1n : -1n
    const scale = abs(before.entryNotional) / BigInt(1 + this.#random(20))
    const amount = (sign * (scale + BigInt(this.#random(3)))) as Quote
    const removeMode: RemoveMode = this.#random(2) === 0 ? 'exact' : 'up_to'
    const minAmount = (this.#random(3) === 0 ? scale / 2n : 0n) as Quote
    const verdict = adjustMargin(this.#spec, before, { amount, removeMode, minAmount }, terms)
    const call = { by, amount, removeMode, minAmount, asOf, price: this.#price }
    await this.#compare('margin', by.address, before, verdict, () =>
      adjustMarginOnChain(this.#exchange, call),
    )
  }

  async #leverage(asOf: Millis): Promise<void> {
    const by = this.#someone()
    const index = this.#indexAt(asOf)
    const before = await this.#positionOf(by.address)
    const terms = { fundingIndex: index, oracle: this.#price as Price }
    const leverage = this.#random(this.#spec.maxLeverage + 2)
    const scale = before.entryNotional / BigInt(1 + this.#random(10))
    const maxMarginIn = (this.#random(2) === 0 ? 10n ** 30n : scale) as Quote
    const minMarginOut = (this.#random(3) === 0 ? scale / 4n : 0n) as Quote
    const asked = { leverage, maxMarginIn, minMarginOut }
    const verdict = adjustLeverage(this.#spec, before, asked, terms)
    const call = { by, ...asked, asOf, price: this.#price }
    await this.#compare('leverage', by.address, before, verdict, () =>
      adjustLeverageOnChain(this.#exchange, call),
    )
  }

  async #compare(
    what: string,
    account: string,
    before: Position,
    verdict: Verdict<Adjusted, { readonly code: string }>,
    call: () => Promise<unknown>,
  ): Promise<void> {
    const free = (await this.#exchange.bank.account(account)).free
    const outcome = await outcomeOf(call())
    expect(outcome).to.equal(expectedOf(verdict))
    this.#note(`${what} ${outcome}`)
    const after = await this.#positionOf(account)
    const moved = verdict.ok ? verdict.value.moved : 0n
    expect(after).to.deep.equal(verdict.ok ? verdict.value.position : before)
    const left = (await this.#exchange.bank.account(account)).free
    expect(left).to.equal(free - moved)
  }
}

describe('parity: funding and adjustments among batches', () => {
  for (const [fixture, seeds] of [
    [perpetualExchange, [1, 2, 3]],
    [futureExchange, [4]],
    [binaryExchange, [5, 6]],
  ] as const) {
    for (const seed of seeds) {
      it(`${fixture.name}, seed ${seed}: ${STEPS} steps to the same wei, and the logs tell it`, async () => {
        const exchange = await (await chain()).networkHelpers.loadFixture(fixture)
        const run = new Run(exchange, seed)
        for (let step = 0; step < STEPS; step++) await run.step()
        const count = (name: string): number => run.seen.get(name) ?? 0
        expect(count('margin done'), [...run.seen].join(' · ')).to.be.greaterThan(2)
        expect(count('leverage done')).to.be.greaterThan(1)
        await audit(exchange)
      }).timeout(60_000)
    }
  }
})
