import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { Quote, UserId } from '../../domain/units.ts'
import { Bank, ChainMarket } from '../../simulate/chain.ts'
import { checkPool } from '../../simulate/exchange-laws.ts'
import { LAW_NAMES } from '../../simulate/laws.ts'
import { LawCounts, Summary } from '../../simulate/report.ts'
import { type Outcome, runScenario } from '../../simulate/run.ts'
import { SCENARIOS, type ScenarioName } from '../../simulate/scenarios.ts'
import { Tally } from '../../simulate/tally.ts'
import { index, perpetual, price, steps } from '../support/markets.ts'

/** With the first one, a gap leaves a pool that cannot pay all who close. */
const SEEDS = [8, 1, 2, 3, 4]

const runAll = (name: ScenarioName): Outcome[] =>
  SEEDS.map((seed, at) => runScenario(name, { seed, accounts: 29 + 8 * at }))

describe('the simulator', () => {
  const outcomes = new Map<ScenarioName, readonly Outcome[]>()

  for (const name of SCENARIOS) {
    it(`when ${name} is run with fixed seeds, no rule is violated`, () => {
      const own = runAll(name)
      outcomes.set(name, own)
      expect(own.flatMap(({ tally }) => tally.violations)).to.deep.equal([])
    })
  }

  it('when all scenarios have run, every step of the ladder and a short pool have occurred', () => {
    const all = [...outcomes.values()].flat()
    const count = (of: (outcome: Outcome) => number): number => all.reduce((sum, each) => sum + of(each), 0)
    for (const kind of ['force', 'rest', 'grace', 'inherit', 'deleverage', 'uncovered'] as const)
      expect(
        count(({ tally }) => tally.steps.get(kind) ?? 0),
        kind,
      ).to.be.greaterThan(0)
    expect(count(({ tally }) => tally.poolShort)).to.be.greaterThan(0)
    expect(count(({ tally }) => tally.forcedFills)).to.be.greaterThan(500)
    expect(Math.max(...all.map(({ tally }) => tally.overDeleveraged))).to.be.at.most(1)
  })

  it('when all scenarios have run, every law has been checked', () => {
    const laws = new LawCounts()
    for (const { tally } of [...outcomes.values()].flat()) laws.add(tally)
    for (const law of LAW_NAMES.filter((each) => each !== 'contracts'))
      expect(laws.of(law).checked, law).to.be.greaterThan(0)
  })

  it('when a scenario is run again with its seed, it ends the same way', () => {
    const row = () => {
      const summary = new Summary()
      summary.add(runScenario('cascade', { seed: 9, accounts: 25 }))
      return summary.row('cascade')
    }
    expect(row()).to.deep.equal(row())
  })

  it('when prices are recorded, they are the path of a scenario', () => {
    const flat = Array.from({ length: 40 }, () => 250)
    const run = (prices: readonly number[]) =>
      runScenario({ name: 'day', kind: 'perpetual', prices }, { seed: 1, accounts: 30 }).tally
    expect([run(flat).liquidations, run(flat).violations]).to.deep.equal([0, []])
    const fallen = run([...flat, 200, 200])
    expect(fallen.liquidations).to.be.greaterThan(0)
    expect(fallen.violations).to.deep.equal([])
  })

  it('when a recording is of probabilities, it is the path of a binary market', () => {
    const prices = [...Array.from({ length: 30 }, () => 0.4), 0.7, 0.99, 1, 1]
    const { tally } = runScenario({ name: 'game', kind: 'binary_future', prices }, { seed: 3, accounts: 30 })
    expect(tally.liquidations).to.be.greaterThan(0)
    expect(tally.violations).to.deep.equal([])
  })
})

describe("the simulator's chain", () => {
  const moment = { asOf: 1_000_000_000, oracle: price('100'), index: index(0n) } as never as {
    readonly asOf: never
    readonly oracle: never
    readonly index: never
  }

  function market() {
    const bank = new Bank()
    for (const account of [2, 3]) bank.free.set(account as UserId, 10n ** 20n)
    const chain = new ChainMarket(perpetual, bank, (10n ** 30n) as Quote)
    chain.report(moment)
    const fill = (account: number, side: 'LONG' | 'SHORT', forced = false) => ({
      ...{ account: account as UserId, side, forced, price: 1000 as never, steps: steps(100) },
      ...{ takerSteps: steps(0), leverage: 5, basis: price('100'), order: {} as never },
    })
    return { bank, chain, fill }
  }

  function brokenLaws(chain: ChainMarket, bank: Bank): string[] {
    const tally = new Tally()
    checkPool({ spec: perpetual, chain }, bank, moment, tally)
    return [...tally.checks].filter(([, { broken }]) => broken > 0).map(([law]) => law)
  }

  it('when an action breaks a rule of the contracts, it changes nothing and names the error', () => {
    const { bank, chain, fill } = market()
    const place = { batch: 1, part: 1, parts: 1 }
    const open = { kind: 'part' as const, place, ...moment, fills: [fill(2, 'LONG'), fill(3, 'SHORT')] }
    expect(chain.execute(open).error).to.equal(null)
    expect(brokenLaws(chain, bank)).to.deep.equal([])
    const before = new Map(bank.free)
    const forced = { ...open, fills: [fill(2, 'SHORT', true), fill(3, 'LONG')] }
    expect(chain.execute(forced).error).to.equal('NotLiquidatable')
    expect(chain.execute({ kind: 'inherit', account: 2 as UserId, ...moment }).error).to.equal(
      'NotLiquidatable',
    )
    bank.pools.set(perpetual.marketId, 0n)
    const close = { ...open, fills: [fill(2, 'SHORT'), fill(3, 'LONG')] }
    expect(chain.execute(close).error).to.equal('PoolInsufficient')
    expect(bank.free).to.deep.equal(before)
    expect(brokenLaws(chain, bank)).to.deep.equal(['pool'])
    bank.free.set(2 as UserId, 0n)
    expect(chain.execute(open).error).to.equal('FreeBalanceInsufficient')
  })
})
