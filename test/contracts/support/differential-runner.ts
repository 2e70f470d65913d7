/** Runs every step first in domain/ and then on the chain; outcomes and resulting state must be equal. */
import { expect } from 'chai'
import type { Wallet } from 'ethers'
import type { LeverageAdjustment, MarginAdjustment } from '../../../domain/positions/adjustment.ts'
import { marginOf } from '../../../domain/positions/position.ts'
import { INHERITANCE_FAILURES } from '../../../domain/risk/risk-replay.ts'
import type { Address, HourlyFunding, Millis, Price, Quote, Seconds } from '../../../domain/units.ts'
import {
  addressOf,
  type Exchange,
  type FillInput,
  nextSecond,
  settle as settleOnChain,
} from '../../support/exchange.ts'
import { errorOf } from '../../support/parity.ts'
import {
  adjustLeverage as adjustLeverageOnChain,
  adjustMargin as adjustMarginOnChain,
  setFunding as setFundingOnChain,
} from './adjust.ts'
import {
  deleverage as deleverageOnChain,
  depositFor,
  finalize as finalizeOnChain,
  inherit as inheritOnChain,
  pass,
  passDisputeWindow,
  type RequestedLeg,
  reportFinal,
  SILENCE,
  settleMode,
} from './risk.ts'
import { atTicks, DONE, type Moment, type StepOutcome, Twin } from './twin.ts'

export class DifferentialRunner {
  readonly exchange: Exchange
  readonly twin: Twin
  /** Accounts whose positions and balances are compared after every step. */
  readonly holders: readonly Address[]
  /** Count by step and outcome. */
  readonly seen = new Map<string, number>()

  private constructor(exchange: Exchange, twin: Twin, holders: readonly Address[]) {
    this.exchange = exchange
    this.twin = twin
    this.holders = holders
  }

  /** Starts with the current balances and no positions. */
  static async of(exchange: Exchange, cap: Quote | null = null): Promise<DifferentialRunner> {
    const backstop = exchange.shared.backstop
    const twin = new Twin(exchange.spec, cap === null ? null : { address: backstop, cap })
    const holders = [...exchange.users.map(addressOf), backstop]
    for (const holder of holders) twin.credit(holder, (await exchange.bank.account(holder)).free)
    return new DifferentialRunner(exchange, twin, holders)
  }

  // ------------------------------------------------------------------ comparing

  async #moment(ticks: number): Promise<Moment> {
    const asOf = ((await nextSecond(this.exchange)) * 1000) as Millis
    return { asOf, oracle: atTicks(this.exchange.spec, ticks) }
  }

  /** `expected` is the twin's outcome. */
  async #compare(what: string, expected: StepOutcome, call: Promise<unknown>): Promise<StepOutcome> {
    const refusal = await errorOf(call)
    const isSpent = INHERITANCE_FAILURES.some((code) => code === expected)
    expect(refusal ?? DONE, what).to.equal(isSpent ? DONE : expected)
    const seen = `${what} ${expected}`
    this.seen.set(seen, (this.seen.get(seen) ?? 0) + 1)
    await this.compareBooks(seen)
    return expected
  }

  /** Positions, balances, pool and fees, to the wei. */
  async compareBooks(after: string): Promise<void> {
    const { bank, trader, spec } = this.exchange
    const { pool, fees, ended, unpaid, deficit } = this.twin.books
    const { fundingIndex: index } = await trader.lastReference()
    expect(index, after).to.equal(this.twin.books.index)
    for (const holder of this.holders) {
      const [held, { free }] = await Promise.all([trader.position(holder), bank.account(holder)])
      const position = this.twin.positionOf(holder)
      expect(
        [held.size, held.entryNotional, held.margin, held.leverage, free],
        `${holder} after ${after}`,
      ).to.deep.equal([
        BigInt(position.size),
        position.entryNotional,
        marginOf(position, this.twin.books.index),
        BigInt(position.leverage),
        this.twin.freeOf(holder),
      ])
    }
    const market = await bank.market(spec.trader)
    expect([market.pool, market.fees], after).to.deep.equal([pool, fees])
    if (ended === null) return
    expect((await trader.windDown()).deficit).to.equal(deficit)
    for (const holder of this.holders) {
      expect(await trader.unpaidClaim(holder)).to.equal(unpaid.get(holder) ?? 0n)
    }
  }

  // ------------------------------------------------------------------ steps

  async settle(ticks: number, fills: readonly FillInput[], what = 'batch'): Promise<StepOutcome> {
    const moment = await this.#moment(ticks)
    const expected = this.twin.settle(moment, ticks, fills)
    const { asOf, oracle: oraclePrice } = moment
    return this.#compare(
      what,
      expected,
      settleOnChain(this.exchange, { price: ticks, asOf, oraclePrice, fills }),
    )
  }

  async inherit(ticks: number, account: { readonly address: string }): Promise<StepOutcome> {
    const moment = await this.#moment(ticks)
    const expected = this.twin.inherit(moment, addressOf(account))
    return this.#compare('inherit', expected, inheritOnChain(this.exchange, account, onChain(moment)))
  }

  async deleverage(
    ticks: number,
    account: { readonly address: string },
    legs: readonly RequestedLeg[],
  ): Promise<StepOutcome> {
    const moment = await this.#moment(ticks)
    const expected = this.twin.deleverage(moment, addressOf(account), legs)
    return this.#compare(
      'deleverage',
      expected,
      deleverageOnChain(this.exchange, account, legs, onChain(moment)),
    )
  }

  /** Against every qualifying counterparty in order, for the whole position. */
  async deleverageFully(ticks: number, account: { readonly address: string }): Promise<StepOutcome> {
    const ranked = this.twin.ranked(addressOf(account), await this.#moment(ticks))
    const legs = ranked.map(({ account: address }) => ({ of: { address }, steps: Number.MAX_SAFE_INTEGER }))
    return this.deleverage(ticks, account, legs)
  }

  /** Pauses the bank and ends the pause at once: the grace for liquidations starts. */
  async pauseBriefly(): Promise<void> {
    const bank = this.exchange.bank.connect(this.exchange.admin)
    await bank.pause()
    await bank.unpause()
    this.twin.pauseEndsAt = Number((await bank.lastPause()).endsAt) as Seconds
  }

  async fund(ticks: number, rate: bigint, lastsMs: number): Promise<StepOutcome> {
    const moment = await this.#moment(ticks)
    const validUntil = (moment.asOf + lastsMs) as Millis
    const expected = this.twin.fund(moment, { rate: rate as HourlyFunding, validUntil })
    const call = setFundingOnChain(this.exchange, { rate, validUntil, ...onChain(moment) })
    return this.#compare('fund', expected, call)
  }

  async adjustMargin(ticks: number, by: Wallet, asked: MarginAdjustment): Promise<StepOutcome> {
    const moment = await this.#moment(ticks)
    const expected = this.twin.adjustMargin(moment, addressOf(by), asked)
    return this.#compare(
      'margin',
      expected,
      adjustMarginOnChain(this.exchange, { by, ...asked, ...onChain(moment) }),
    )
  }

  async adjustLeverage(ticks: number, by: Wallet, asked: LeverageAdjustment): Promise<StepOutcome> {
    const moment = await this.#moment(ticks)
    const expected = this.twin.adjustLeverage(moment, addressOf(by), asked)
    return this.#compare(
      'leverage',
      expected,
      adjustLeverageOnChain(this.exchange, { by, ...asked, ...onChain(moment) }),
    )
  }

  // ------------------------------------------------------------------ wind-down

  /** Freezes the market after a day of silence, at the last price that it used. */
  async freeze(): Promise<void> {
    const { trader, admin, connection } = this.exchange
    const { oraclePrice } = await trader.lastReference()
    await trader.connect(admin).requestFreeze()
    await pass(this.exchange, SILENCE + 3)
    const asOf = ((await nextSecond(this.exchange)) * 1000) as Millis
    await connection.networkHelpers.time.setNextBlockTimestamp(asOf / 1000)
    const expected = this.twin.end({ asOf, oracle: oraclePrice as Price })
    await this.#compare('freeze', expected, trader.connect(admin).freeze())
  }

  /** The market closes a day after the announcement; its final report and, after the dispute window, its end follow. */
  async finalize(ticks: number): Promise<void> {
    const closesAt = (await settleMode(this.exchange)) as Millis
    const oracle = (await this.#moment(ticks)).oracle
    await reportFinal(this.exchange, { price: oracle })
    await passDisputeWindow(this.exchange)
    const asOf = ((await nextSecond(this.exchange)) * 1000) as Millis
    const expected = this.twin.end({ asOf, oracle }, closesAt)
    await this.#compare('finalize', expected, finalizeOnChain(this.exchange, { asOf }))
  }

  async reportInsolvent(accounts: readonly Address[]): Promise<StepOutcome> {
    const { trader, admin } = this.exchange
    const expected = this.twin.reportInsolvent(accounts)
    return this.#compare('report', expected, trader.connect(admin).reportInsolvent([...accounts]))
  }

  /** Covers from an amount that is deposited for the market just before. */
  async cover(amount: bigint): Promise<StepOutcome> {
    const { trader, admin, spec } = this.exchange
    await depositFor(this.exchange, spec.trader, amount)
    this.twin.credit(spec.trader, amount)
    return this.#compare('cover', this.twin.cover(amount), trader.connect(admin).coverDeficit(amount))
  }

  async claim(account: Address): Promise<StepOutcome> {
    const { trader, admin } = this.exchange
    return this.#compare('claim', this.twin.claim(account), trader.connect(admin).claim(account))
  }
}

const onChain = ({ asOf, oracle }: Moment) => ({ asOf, price: oracle })
