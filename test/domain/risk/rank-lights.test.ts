import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import type { Position } from '../../../domain/positions/position.ts'
import { compareRanks, scoreOf } from '../../../domain/risk/deleverage.ts'
import {
  LIGHTS,
  lightsOf,
  MOST_RANKED,
  rankSides,
  samplePositions,
} from '../../../domain/risk/rank-lights.ts'
import type { Address, FundingIndex, Price, Quote, Steps } from '../../../domain/units.ts'
import { e18, perpetual } from '../../support/markets.ts'

const basis = { oracle: e18('100') as Price, index: 0n as FundingIndex }

const position = (size: number, entryPrice: number, leverage: number): Position => {
  const entry = (BigInt(Math.abs(size)) * perpetual.step * BigInt(entryPrice)) as Quote
  return {
    size: size as Steps,
    entryNotional: entry,
    foldedMargin: (entry / BigInt(leverage)) as Quote,
    leverage,
  }
}

const anyPosition = fc
  .tuple(
    fc.integer({ min: -50, max: 50 }),
    fc.integer({ min: 60, max: 140 }),
    fc.integer({ min: 1, max: 10 }),
  )
  .map(([size, entryPrice, leverage]) => position(size, entryPrice, leverage))

describe('the lights of a position', () => {
  const lights = (each: Position, all: readonly Position[]) =>
    lightsOf(perpetual, each, rankSides(perpetual, samplePositions(all), basis))

  it('when any positions are ranked, a position has the lights of its fifth among the candidates of its side', () => {
    fc.assert(
      fc.property(fc.array(anyPosition, { minLength: 1, maxLength: 60 }), (all) => {
        for (const side of [1, -1]) {
          const candidates = all
            .filter(({ size }) => Math.sign(size) === side)
            .map((each) => ({ each, score: scoreOf(perpetual, each, basis.index, basis.oracle) }))
            .flatMap(({ each, score }) => (score === null ? [] : [{ each, score, account: '0x' as Address }]))
            .sort(compareRanks)
          for (const [, { each, score }] of candidates.entries()) {
            // Equal scores share the best place of theirs.
            const place = candidates.findIndex((other) => other.score === score)
            const last = candidates.findLastIndex((other) => other.score === score)
            const fifthOf = (at: number) => LIGHTS - Math.floor((at * LIGHTS) / candidates.length)
            expect(lights(each, all)).to.be.within(fifthOf(last), fifthOf(place))
          }
        }
      }),
      { seed: 15, numRuns: 200 },
    )
  })

  it('when ten candidates have different scores, each fifth has two of them', () => {
    const all = Array.from({ length: 10 }, (_, at) => position(5, 80 + at, 5))
    expect(all.map((each) => lights(each, all))).to.deep.equal([5, 5, 4, 4, 3, 3, 2, 2, 1, 1])
  })

  it('when a position is flat, without profit or without equity, it has none', () => {
    const all = [position(5, 80, 5), position(0, 80, 5), position(5, 120, 5), position(-5, 120, 5)]
    expect(all.map((each) => lights(each, all))).to.deep.equal([5, null, null, 5])
  })

  it('when a candidate appears on a side that had none, it has five lights', () => {
    expect(lights(position(-5, 120, 5), [position(5, 80, 5)])).to.equal(5)
  })

  it('when a side has more positions than are ranked, an even sample of it stands for all', () => {
    const all = Array.from({ length: 20 * MOST_RANKED }, (_, at) =>
      position(1 + (at % 7), 60 + (at % 39), 1 + (at % 5)),
    )
    const sample = samplePositions(all)
    expect(sample.length).to.be.at.most(MOST_RANKED)
    const ranks = rankSides(perpetual, sample, basis)
    const counts = Map.groupBy(all, (each) => lightsOf(perpetual, each, ranks))
    for (const [, { length }] of counts) expect(length / all.length).to.be.within(0.15, 0.25)
  })
})
