import { expect } from 'chai'
import type { Wallet } from 'ethers'
import { adjustLeverage, adjustMargin, setFunding } from '../../support/adjust.ts'
import { audit } from '../../support/audit.ts'
import {
  binaryExchange,
  chain,
  type Exchange,
  futureExchange,
  perpetualExchange,
  settle,
} from '../../support/exchange.ts'
import { e18 } from '../../support/markets.ts'
import { errorOf, randomOf } from '../../support/parity.ts'
import { randomFills } from '../../support/random-batch.ts'
import {
  DAY,
  deleverage,
  inherit,
  LISTING_WINDOW,
  pass,
  SILENCE,
  trade,
  withBackstop,
} from '../../support/risk.ts'

/** What a step may be refused for: somebody cannot pay, nothing is due, or the random wish was too much. */
const EXPECTED = new Set([
  'MarginInsufficient',
  'ProceedsNegative',
  'FreeBalanceInsufficient',
  'PoolInsufficient',
  'NotLiquidatable',
  'BackstopFirst',
  'NothingMoves',
  'NoPosition',
  'RemovalTooLarge',
  'AdditionInsufficient',
  'FundingRateOutOfRange',
])

const STEPS = 40
/** Salts of random batches lie above those that are counted up. */
const FIRST_BATCH = 10_000

class Sequence {
  readonly done = new Map<string, number>()
  #price: number
  #turn = 0
  readonly #exchange: Exchange
  readonly #random: (end: number) => number
  readonly #least: number

  constructor(exchange: Exchange, middle: number, seed: number) {
    this.#exchange = exchange
    this.#random = randomOf(seed)
    this.#price = middle
    this.#least = Math.trunc(middle / 2)
  }

  /** The price wanders by up to 8 % a step: enough to liquidate within a few. */
  #wander(): number {
    const reach = Math.trunc(this.#price / 12.5)
    const next = this.#price - reach + this.#random(2 * reach + 1)
    this.#price = Math.min(Math.max(next, this.#least), this.#least * 3)
    return this.#price
  }

  #user(offset = 0): Wallet {
    const { users } = this.#exchange
    return users[(this.#turn + offset) % users.length] as Wallet
  }

  async #worst(price: bigint): Promise<Wallet> {
    const { users, trader } = this.#exchange
    const ratios = await Promise.all(
      users.map(async (user) => {
        const [equity, notional] = await trader.health(user.address, price)
        return notional === 0n ? Number.POSITIVE_INFINITY : Number((equity * 1_000_000n) / notional)
      }),
    )
    return users[ratios.indexOf(Math.min(...ratios))] as Wallet
  }

  async #forced(ticks: number, price: bigint): Promise<unknown> {
    const worst = await this.#worst(price)
    const { size } = await this.#exchange.trader.position(worst.address)
    if (size === 0n) return null
    const fill = Math.abs(Number(size))
    const others = this.#exchange.users.filter((user) => user !== worst)
    const [side, against] = size > 0n ? (['SHORT', 'LONG'] as const) : (['LONG', 'SHORT'] as const)
    const fills = [
      { by: worst, side, fill, forced: BigInt(this.#turn), taker: 0 },
      { by: others[this.#random(others.length)]!, side: against, fill, leverage: 2, taker: fill },
    ]
    return settle(this.#exchange, { price: ticks, fills })
  }

  /** One step, by name. */
  async #take(name: string, ticks: number): Promise<unknown> {
    const exchange = this.#exchange
    const price = BigInt(ticks) * exchange.spec.tick
    switch (name) {
      case 'batch':
        return settle(exchange, {
          price: ticks,
          fills: randomFills(exchange, ticks, FIRST_BATCH + this.#turn, this.#random),
        })
      case 'leveraged': {
        const deal = { steps: 50 + this.#random(500), price: ticks, leverage: exchange.spec.maxLeverage }
        return trade(exchange, this.#user(), this.#user(1), deal)
      }
      case 'fund':
        return setFunding(exchange, { price, rate: BigInt(this.#random(2001) - 1000) * 10n ** 13n })
      case 'margin': {
        const amount = e18(`${1 + this.#random(2000)}`)
        const removes = this.#random(2) === 0
        const wish = removes ? ({ amount: -amount, removeMode: 'up_to' } as const) : { amount }
        return adjustMargin(exchange, { by: this.#user(), price, ...wish })
      }
      case 'leverage': {
        const leverage = 1 + this.#random(exchange.spec.maxLeverage)
        return adjustLeverage(exchange, { by: this.#user(), price, leverage })
      }
      case 'forced':
        return this.#forced(ticks, price)
      case 'inherit':
        return inherit(exchange, await this.#worst(price), { price })
      default: {
        const worst = await this.#worst(price)
        const other = exchange.users[this.#random(exchange.users.length)] as Wallet
        return deleverage(exchange, worst, [{ of: other, steps: 1 + this.#random(500) }], { price })
      }
    }
  }

  async step(): Promise<void> {
    this.#turn++
    const names = ['batch', 'leveraged', 'leveraged', 'margin', 'leverage', 'forced', 'inherit', 'deleverage']
    if (this.#exchange.spec.kind === 'perpetual') names.push('fund')
    const name = names[this.#random(names.length)] as string
    const before = this.#price
    const refusal = await errorOf(this.#take(name, this.#wander()))
    if (refusal === null) this.done.set(name, (this.done.get(name) ?? 0) + 1)
    else {
      expect(EXPECTED.has(refusal), `${name} is refused: ${refusal}`).to.equal(true)
      this.#price = before
    }
  }
}

/** The operator is gone: everybody counts, claims, and is audited once more. */
async function end(exchange: Exchange): Promise<void> {
  const { trader, admin, users } = exchange
  await trader.connect(admin).requestFreeze()
  await pass(exchange, SILENCE + 2)
  await trader.connect(admin).freeze()
  const holders = [...users.map(({ address }) => address), exchange.shared.backstop]
  await trader.connect(admin).listInsolvent(holders)
  await pass(exchange, LISTING_WINDOW + DAY)
  for (const holder of holders) {
    const refusal = await errorOf(trader.connect(admin).claim(holder))
    expect(refusal === null || refusal === 'NothingToClaim').to.equal(true)
  }
}

const cases = [
  { kind: 'perpetual', fixture: perpetualExchange, middle: 500_000, seeds: [1, 2] },
  { kind: 'future', fixture: futureExchange, middle: 2_000, seeds: [3] },
  { kind: 'binary', fixture: binaryExchange, middle: 400, seeds: [4] },
]

describe('everything that moves positions, mixed', () => {
  for (const { kind, fixture, middle, seeds } of cases) {
    for (const seed of seeds) {
      it(`given a ${kind} and seed ${seed}, logs rebuild it to the last claim`, async () => {
        const exchange = await (await chain()).networkHelpers.loadFixture(fixture)
        await withBackstop(exchange, e18('400000'), e18('100000'))
        const sequence = new Sequence(exchange, middle, seed)
        for (let step = 0; step < STEPS; step++) {
          await sequence.step()
          if (step % 5 === 4) await audit(exchange)
        }
        expect(sequence.done.size).to.be.greaterThan(4)
        await end(exchange)
        await audit(exchange)
      }).timeout(120_000)
    }
  }
})
