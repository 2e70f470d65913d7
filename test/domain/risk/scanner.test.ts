import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import type { MarketSpec } from '../../../domain/market/market.ts'
import { exposureOf, isLiquidatable } from '../../../domain/positions/margin.ts'
import { FLAT, foldMargin, type Position } from '../../../domain/positions/position.ts'
import { closeAgainst, compareRanks, scoreOf } from '../../../domain/risk/deleverage.ts'
import { liquidationPrice } from '../../../domain/risk/liquidation-price.ts'
import { PositionScanner } from '../../../domain/risk/scanner.ts'
import {
  type Address,
  type FundingIndex,
  ONE,
  type Price,
  type Quote,
  type Steps,
  type UserId,
} from '../../../domain/units.ts'
import { markets } from '../../support/markets.ts'
import { randomOf } from '../../support/random.ts'

type Random = ReturnType<typeof randomOf>

const pick = <T>(random: Random, values: readonly T[]): T => values[random(values.length)] as T
/** A few hundred wei up to the full width of the numbers. */
const dust = (random: Random): bigint => BigInt(random(1000)) * 10n ** BigInt(random(12))

/** A position of 0 to 2 million steps, entered within 20 % of the price, with up to 40 % margin or a deficit. */
function positionAt(random: Random, spec: MarketSpec, oracle: Price, index: FundingIndex): Position {
  if (random(10) === 0) return FLAT
  const count = 1 + random(pick(random, [3, 1000, 2_000_000]))
  const size = (random(2) === 0 ? count : -count) as Steps
  const value = (BigInt(count) * spec.step * oracle) / ONE
  const entry = (value * BigInt(800 + random(400))) / 1000n + dust(random)
  const margin = (entry * BigInt(random(450) - 50)) / 1000n - dust(random)
  return { size, entryNotional: entry as Quote, foldedMargin: foldMargin(margin, size, index), leverage: 5 }
}

const addressOf = (account: UserId): Address => `0x${account.toString(16).padStart(40, '0')}` as Address

/** Positions and their scanner after random updates, prices and funding. */
function* passages(seed: number, rounds: number) {
  const random = randomOf(seed)
  const spec = pick(random, markets)
  const positions = new Map<UserId, Position>()
  let oracle = (spec.tick * BigInt(20 + random(900))) as Price
  let index = 0n as FundingIndex
  let scanner = PositionScanner.of([])
  for (let round = 0; round < rounds; round++) {
    for (let change = random(40); change > 0; change--) {
      const account = random(60) as UserId
      const position = positionAt(random, spec, oracle, index)
      positions.set(account, position)
      scanner.set(account, position)
    }
    if (random(8) === 0) scanner = PositionScanner.of(positions)
    const moved = (oracle * BigInt(900 + random(200))) / 1000n + BigInt(random(1000))
    const top = spec.kind === 'binary_future' ? ONE - 1n : 10n ** 24n
    oracle = (moved < 1n ? 1n : moved > top ? top : moved) as Price
    if (spec.kind === 'perpetual')
      index = (index + BigInt(random(2_000_001) - 1_000_000) * 10n ** BigInt(random(9))) as FundingIndex
    // Half of the time, exactly at a liquidation price or one wei beside it.
    const bound = [...positions.values()]
      .map((each) => liquidationPrice(spec, each, index))
      .find((each) => each !== null)
    const at = bound && random(2) === 0 ? bound + BigInt(random(3) - 1) : oracle
    yield {
      random,
      scanner,
      positions,
      terms: { spec, index, oracle: (at < 1n ? 1n : at > top ? top : at) as Price },
    }
  }
}

const ascending = (accounts: Iterable<UserId>): UserId[] => [...accounts].sort((a, b) => a - b)

describe('PositionScanner', () => {
  it('when prices, funding and positions change, it finds exactly the positions that the naive scan finds', () => {
    let [found, lost] = [0, 0]
    for (let seed = 1; seed <= 300; seed++) {
      for (const { scanner, positions, terms } of passages(seed, 12)) {
        const { spec, index, oracle } = terms
        const naive = [...positions]
          .filter(([, each]) => isLiquidatable(spec, each, index, oracle))
          .map(([account]) => account)
        const scanned = ascending(
          scanner.liquidatable(terms, (account) => positions.get(account) as Position),
        )
        expect(scanned, `seed ${seed}`).to.deep.equal(ascending(naive))
        const bankrupt = naive.filter((account) => {
          const position = positions.get(account) as Position
          return exposureOf(spec, position, index, oracle).equity <= 0n
        })
        const withoutEquity = scanner.withoutEquity(terms, (account) => positions.get(account) as Position)
        expect(ascending(withoutEquity), `seed ${seed}`).to.deep.equal(ascending(bankrupt))
        lost += bankrupt.length
        expect(scanner.size).to.equal([...positions.values()].filter(({ size }) => size !== 0).length)
        found += scanned.length
      }
    }
    expect(found).to.be.greaterThan(10_000)
    expect(lost).to.be.greaterThan(1_000)
  })

  it('when the equity is exactly 0, the position is without equity; with a wei more it is not', () => {
    const [spec] = markets as [MarketSpec]
    const held = {
      size: 1000,
      entryNotional: 1000n * spec.step * 100n,
      foldedMargin: 0n,
      leverage: 5,
    } as Position
    const terms = { spec, index: 0n as FundingIndex, oracle: (100n * ONE) as Price }
    for (const margin of [0n, 1n]) {
      const position = { ...held, foldedMargin: margin as Quote }
      const scanner = PositionScanner.of([[1 as UserId, position]])
      expect([...scanner.withoutEquity(terms, () => position)]).to.deep.equal(margin === 0n ? [1] : [])
      expect([...scanner.liquidatable(terms, () => position)]).to.deep.equal([1])
    }
  })

  it('when nothing is near its threshold, it computes no position', () => {
    const [spec] = markets as [MarketSpec]
    const of = (size: number, entry: bigint, margin: bigint): Position =>
      ({ size, entryNotional: entry, foldedMargin: margin, leverage: 5 }) as Position
    const scanner = PositionScanner.of([
      [1 as UserId, of(1000, 100n * ONE, 50n * ONE)],
      [2 as UserId, of(-1000, 100n * ONE, 50n * ONE)],
    ])
    const terms = { spec, index: 0n as FundingIndex, oracle: (100n * ONE) as Price }
    const read: UserId[] = []
    const positionOf = (account: UserId): Position => {
      read.push(account)
      return of(1000, 100n * ONE, 50n * ONE)
    }
    expect([...scanner.liquidatable(terms, positionOf)]).to.deep.equal([])
    expect(read).to.deep.equal([])
    const low = { ...terms, oracle: (40n * ONE) as Price }
    expect([...scanner.liquidatable(low, positionOf)]).to.deep.equal([1])
    expect(read).to.deep.equal([1])
  })

  it('when several positions are below, it starts with the farthest below per step', () => {
    const [spec] = markets as [MarketSpec]
    const of = (size: number, margin: bigint): Position =>
      ({ size, entryNotional: 100n * ONE, foldedMargin: margin, leverage: 5 }) as Position
    const positions = new Map([
      [1 as UserId, of(1000, 2n * ONE)],
      [2 as UserId, of(-1000, ONE)],
      [3 as UserId, of(1000, -ONE)],
      [4 as UserId, of(-1000, -2n * ONE)],
    ])
    const terms = { spec, index: 0n as FundingIndex, oracle: (100n * ONE) as Price }
    const scanned = PositionScanner.of(positions).liquidatable(
      terms,
      (account) => positions.get(account) as Position,
    )
    expect([...scanned]).to.deep.equal([4, 3, 2, 1])
  })

  it('when counterparties are chosen, they contain the best by rank that can pay, and are few', () => {
    const seen = { asked: 0, returned: 0 }
    for (let seed = 1; seed <= 400; seed++) {
      for (const { random, scanner, positions, terms } of passages(seed, 6)) {
        const { spec, index, oracle } = terms
        const position = positionAt(random, spec, oracle, index)
        if (position.size === 0) continue
        const count = 1 + random(12)
        const best = [...positions]
          .flatMap(([account, other]) => {
            if (other.size * position.size >= 0) return []
            const score = scoreOf(spec, other, index, oracle)
            const leg = closeAgainst(spec, position, other, 1e9 as Steps, index, oracle)
            return score === null || leg === null
              ? []
              : [{ user: account, account: addressOf(account), score }]
          })
          .sort(compareRanks)
        const chosen = scanner.counterparties(terms, position, count)
        expect(chosen, `seed ${seed}`).to.include.members(best.slice(0, count).map(({ user }) => user))
        seen.asked += Math.min(count, best.length)
        seen.returned += chosen.length
      }
    }
    expect(seen.asked).to.be.greaterThan(2_000)
    expect(seen.returned).to.be.lessThan(seen.asked * 1.02)
  })

  it('when positions are set and closed at random, it keeps only the last of each account', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.nat(9), fc.integer({ min: -3, max: 3 })), { maxLength: 80 }),
        (changes) => {
          const [spec] = markets as [MarketSpec]
          const positions = new Map<UserId, Position>()
          const scanner = PositionScanner.of([])
          for (const [account, size] of changes) {
            const position = {
              size,
              entryNotional: BigInt(Math.abs(size)) * ONE,
              foldedMargin: -BigInt(account),
              leverage: 1,
            } as Position
            positions.set(account as UserId, position)
            scanner.set(account as UserId, position)
          }
          const terms = { spec, index: 0n as FundingIndex, oracle: (2_000n * ONE) as Price }
          const open = [...positions].filter(([, { size }]) => size < 0).map(([account]) => account)
          expect(
            ascending(scanner.liquidatable(terms, (account) => positions.get(account) as Position)),
          ).to.deep.equal(ascending(open))
        },
      ),
      { numRuns: 300, seed: 15 },
    )
  })
})
