import { expect } from 'chai'
import { type Wallet, ZeroAddress } from 'ethers'
import fc from 'fast-check'
import { exposureOf, isLiquidatable, LIQUIDATION_BUFFER, mayOpen } from '../../domain/positions/margin.ts'
import type { Position } from '../../domain/positions/position.ts'
import { closeAgainst, scoreOf } from '../../domain/risk/deleverage.ts'
import { inherit, merge } from '../../domain/risk/liquidation.ts'
import { INHERITANCE_FAILURES } from '../../domain/risk/risk-replay.ts'
import { divCeil, ONE, type Quote, type Rate, type Steps, type Ticks } from '../../domain/units.ts'
import type { LibHarness } from '../../typechain-types/mocks/LibHarness.ts'
import { anyMarketCase, type MarketCase } from '../support/any-positions.ts'
import { refusalOf } from '../support/errors.ts'
import { caller, type Exchange, fieldsOf, perpetualExchange, START_BALANCE } from '../support/exchange.ts'
import { e18 } from '../support/markets.ts'
import { harness, positionStruct, termsStruct } from '../support/parity.ts'
import { randomOf } from '../support/random.ts'

const RUNS = 200
const MILLIONTH = 10n ** 12n
const scenes = (seed: number): MarketCase[] => fc.sample(anyMarketCase(2), { numRuns: RUNS, seed })

const valuationOf = ({ spec, oracle }: MarketCase) => ({
  oracleStepX: oracle * spec.step,
  step: spec.step,
  binary: spec.kind === 'binary_future',
  imr: spec.imr / MILLIONTH,
  mmr: spec.mmr / MILLIONTH,
})

type Held = Awaited<ReturnType<LibHarness['merge']>>
const read = (held: Held) => {
  const { size, leverage, ...rest } = fieldsOf(held)
  return { ...rest, size: Number(size), leverage: Number(leverage) }
}

describe('parity: requirements, backstop and deleveraging', () => {
  let rules: LibHarness
  let exchange: Exchange
  before(async () => {
    rules = await harness()
    exchange = await perpetualExchange()
    const [, poor] = exchange.users as [Wallet, Wallet]
    await exchange.bank
      .connect(await caller(exchange, poor))
      .requestWithdrawal((START_BALANCE * 99_999n) / 100_000n)
  })

  it(`decides alike for ${RUNS} positions whether they are liquidatable and whether they meet the initial requirement`, async () => {
    const seen = new Set<string>()
    for (const { spec, positions, index, oracle } of scenes(5)) {
      const [position] = positions as [Position]
      const rates = { makerFee: 0n as Rate, takerFee: 0n as Rate, fundingIndex: index }
      const terms = await termsStruct(rules, spec, { price: 1 as Ticks, oracle, terms: rates })
      const held = positionStruct(position, index)
      const { equity, notional } = exposureOf(spec, position, index, oracle)
      expect([...(await rules.exposure(held, oracle * spec.step, spec.step, terms.binary))]).to.deep.equal([
        equity,
        notional,
      ])
      const trigger = (notional * (spec.mmr + LIQUIDATION_BUFFER)) / ONE
      const spared = `NotLiquidatable(${ZeroAddress},${equity},${trigger})`
      const isForced = isLiquidatable(spec, position, index, oracle)
      expect(await refusalOf(rules.requireLiquidatable(held, terms))).to.equal(isForced ? null : spared)
      const short = `MarginInsufficient(${ZeroAddress},${(notional * spec.imr) / ONE},${equity})`
      const isSound = mayOpen(spec, position, index, oracle)
      expect(await refusalOf(rules.requireInitial(held, terms))).to.equal(isSound ? null : short)
      seen.add(`${isForced} ${isSound}`)
    }
    // At the bounds: the one wei of margin that decides.
    for (const { spec, positions, index, oracle } of scenes(6).slice(0, 60)) {
      const [position] = positions as [Position]
      if (position.size === 0) continue
      const rates = { makerFee: 0n as Rate, takerFee: 0n as Rate, fundingIndex: index }
      const terms = await termsStruct(rules, spec, { price: 1 as Ticks, oracle, terms: rates })
      const { equity, notional } = exposureOf(spec, position, index, oracle)
      for (const share of [spec.imr, spec.mmr + LIQUIDATION_BUFFER]) {
        const missing = divCeil(notional * share - equity * ONE, ONE * ONE)
        for (const change of [-1n, 0n]) {
          const foldedMargin = (position.foldedMargin + missing + change) as Quote
          const edge = { ...position, foldedMargin }
          const held = positionStruct(edge, index)
          const isForced = isLiquidatable(spec, edge, index, oracle)
          expect((await refusalOf(rules.requireLiquidatable(held, terms))) === null).to.equal(isForced)
          const isSound = mayOpen(spec, edge, index, oracle)
          expect((await refusalOf(rules.requireInitial(held, terms))) === null).to.equal(isSound)
        }
      }
    }
    expect([...seen].sort()).to.deep.equal(['false false', 'false true', 'true false'])
  }).timeout(60_000)

  it(`merges ${RUNS} pairs of positions to the same wei`, async () => {
    for (const { positions, index } of scenes(1)) {
      const [a, b] = positions as [Position, Position]
      const merged = await rules.merge(positionStruct(a, index), positionStruct(b, index))
      expect(read(merged)).to.deep.equal(positionStruct(merge(a, b, index), index))
    }
  }).timeout(60_000)

  it('merges two positions of one step each to the result of both, and keeps the mark of cancel floors', async () => {
    const side = (size: number, entryNotional: bigint) => ({
      ...{ size, entryNotional, margin: 10n, leverage: 2, hasFloors: false },
    })
    const bought = await rules.merge(side(1, 70n), side(-1, 100n))
    expect([bought.size, bought.entryNotional, bought.margin]).to.deep.equal([0n, 0n, 50n])
    const marked = await rules.merge({ ...side(1, 70n), hasFloors: true }, side(1, 100n))
    expect([marked.hasFloors, marked.entryNotional]).to.deep.equal([true, 170n])
  })

  it('at the bounds of an inheritance, it decides by the last wei of notional and of margin', async () => {
    const [{ address: backstop }] = exchange.users as [Wallet]
    const inheritAt = (
      [held, added]: readonly [number, number],
      valuation: { oracleStepX: bigint; imr: bigint; entry: bigint },
      backstopCap: bigint,
    ) => {
      const { oracleStepX, imr, entry } = valuation
      const sized = (size: number) => ({
        ...{ size, entryNotional: entry * BigInt(Math.abs(size)), margin: 0n, leverage: 1, hasFloors: false },
      })
      const terms = { oracleStepX, step: ONE, binary: false, imr, mmr: 0n }
      const args = [sized(held), sized(added), { backstop, backstopCap }, terms] as const
      return rules.inherit(...args, exchange.shared.marginBank)
    }
    const [inherited, capExceeded] = [0n, BigInt(INHERITANCE_FAILURES.indexOf('CAP_EXCEEDED') + 1)]
    // A notional of 5 wei and 1e-18 of a wei counts as 6.
    const sixWei = { oracleStepX: 5n * ONE + 1n, imr: 0n, entry: 5n }
    const [, below] = await inheritAt([0, 1], sixWei, 5n)
    expect([below.failure, below.needed]).to.deep.equal([capExceeded, 6n])
    expect((await inheritAt([0, 1], sixWei, 6n))[1].failure).to.equal(inherited)
    // A position that turns, and is as large as before, has not grown.
    expect((await inheritAt([1, -2], sixWei, 0n))[1].failure).to.equal(inherited)
    // What is missing to IMR is 1e-24 of a wei: the backstop pays a whole one.
    const shortOfOne = { oracleStepX: 10n ** 24n - 1n, imr: 999_999n, entry: 1n }
    expect((await inheritAt([0, 1], shortOfOne, ONE))[1].freeDelta).to.equal(-1n)
  })

  it(`inherits ${RUNS} positions alike or fails for the same reason`, async () => {
    const random = randomOf(2)
    const seen = new Map<string, number>()
    const { bank, shared, users } = exchange
    // A rich or a poor account takes the place of the backstop.
    const named = await Promise.all(
      users.slice(0, 2).map(async ({ address }) => ({ address, free: (await bank.account(address)).free })),
    )
    for (const scene of scenes(2)) {
      const { spec, positions, index, oracle } = scene
      const [own, position] = positions as [Position, Position]
      const cap = (random(2) === 0 ? e18('1000000000') : BigInt(random(1000)) * e18('100')) as Quote
      const { address: backstop, free } = named[random(2)] as { address: string; free: bigint }
      const isNamed = random(10) > 0
      const [held, result] = await rules.inherit(
        positionStruct(own, index),
        positionStruct(position, index),
        { backstop: isNamed ? backstop : `0x${'00'.repeat(20)}`, backstopCap: cap },
        valuationOf(scene),
        shared.marginBank,
      )
      const twin = isNamed ? { position: own, cap, free: free as Quote } : null
      const verdict = inherit(spec, position, twin, index, oracle)
      const outcome = verdict.ok ? 'inherited' : verdict.refusal.code
      seen.set(outcome, (seen.get(outcome) ?? 0) + 1)
      if (verdict.ok) {
        expect([result.failure, result.freeDelta]).to.deep.equal([0n, verdict.value.freeDelta])
        expect(read(held)).to.deep.equal(positionStruct(verdict.value.position, index))
        continue
      }
      const { code } = verdict.refusal
      expect(Number(result.failure)).to.equal(INHERITANCE_FAILURES.indexOf(code) + 1)
      if ('needed' in verdict.refusal) {
        const { needed, available } = verdict.refusal
        expect([result.needed, result.available]).to.deep.equal([needed, available])
      }
    }
    for (const outcome of ['inherited', ...INHERITANCE_FAILURES]) {
      expect(seen.get(outcome), outcome).to.be.greaterThan(3)
    }
  }).timeout(60_000)

  it(`scores ${RUNS} counterparties alike`, async () => {
    let qualified = 0
    for (const scene of scenes(3)) {
      const [position] = scene.positions as [Position]
      const [qualifies, value] = await rules.score(positionStruct(position, scene.index), valuationOf(scene))
      const score = scoreOf(scene.spec, position, scene.index, scene.oracle)
      expect(qualifies ? value : null).to.equal(score)
      if (qualifies) qualified++
    }
    expect(qualified).to.be.greaterThan(RUNS / 10)
  }).timeout(60_000)

  it('when profit, equity or entry notional is 0 or the least above 0, the score follows the exact value', async () => {
    const scoreAt = async (entryNotional: bigint, margin: bigint, oracleStepX: bigint) => {
      const held = { size: 1, entryNotional, margin, leverage: 1, hasFloors: false }
      const terms = { oracleStepX, step: ONE, binary: false, imr: 0n, mmr: 0n }
      return [...(await rules.score(held, terms))]
    }
    const none = [false, 0n]
    // Profit of 0, and of 1e-18 of a wei.
    expect(await scoreAt(10n, 1n, 10n * ONE)).to.deep.equal(none)
    expect(await scoreAt(10n, 1n, 10n * ONE + 1n)).to.deep.equal([true, 0n])
    // Equity of 0, and of 1e-18 of a wei: a gain of a tenth times a leverage of 11e18.
    expect(await scoreAt(10n, -1n, 11n * ONE)).to.deep.equal(none)
    const gain = (ONE + 1n) / 10n
    expect(await scoreAt(10n, -1n, 11n * ONE + 1n)).to.deep.equal([true, gain * (11n * ONE + 1n)])
    // Entry notional of 0, and of 1 wei.
    expect(await scoreAt(0n, 1n, ONE)).to.deep.equal(none)
    expect(await scoreAt(1n, 1n, 2n * ONE)).to.deep.equal([true, ONE])
  })

  it('when the counterparty’s proceeds are 0, the pair closes; at -1 wei it does not', async () => {
    const sided = (size: number, entryNotional: bigint, margin: bigint) => ({
      ...{ size, entryNotional, margin, leverage: 1, hasFloors: false },
    })
    // The short sold at 90 and buys back at 95 with 5 of margin.
    const closed = await rules.closeAgainst(sided(2, 200n, 10n), sided(-2, 180n, 10n), 1)
    expect([closed.rest.size, closed.other.size, closed.steps, closed.payout]).to.deep.equal([
      1n,
      -1n,
      1n,
      0n,
    ])
    const skipped = await rules.closeAgainst(sided(2, 200n, 10n), sided(-2, 180n, 8n), 1)
    expect([skipped.rest.size, skipped.steps, skipped.payout]).to.deep.equal([2n, 0n, 0n])
  })

  it('closes pairs of positions to the same wei', async () => {
    const random = randomOf(4)
    let closed = 0
    for (const { spec, positions, index, oracle } of fc.sample(anyMarketCase(2), {
      numRuns: 1500,
      seed: 4,
    })) {
      const [a, b] = positions as [Position, Position]
      const asked = (1 + random(random(2) === 0 ? 60 : 3_000_000)) as Steps
      const leg = closeAgainst(spec, a, b, asked, index, oracle)
      // `score` decides whether a counterparty qualifies.
      if (a.size * b.size >= 0 || scoreOf(spec, b, index, oracle) === null) continue
      const result = await rules.closeAgainst(positionStruct(a, index), positionStruct(b, index), asked)
      const [rest, other, steps, payout] = result
      expect([Number(steps), payout]).to.deep.equal([leg?.steps ?? 0, leg?.payout ?? 0n])
      expect(read(rest)).to.deep.equal(positionStruct(leg?.position ?? a, index))
      expect(read(other)).to.deep.equal(positionStruct(leg?.counterparty ?? b, index))
      if (leg !== null) closed++
    }
    expect(closed).to.be.greaterThan(50)
  }).timeout(60_000)
})
