import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { nextAsOf } from '../../../domain/auction/as-of.ts'
import { ACTION_AHEAD } from '../../../domain/settlement/durations.ts'
import type { Millis } from '../../../domain/units.ts'

const NOW = 1_800_000_000_000 as Millis
const plus = (ms: number): Millis => (NOW + ms) as Millis

describe('nextAsOf', () => {
  it('when clock and chain agree, it is the time of the clock', () => {
    expect(nextAsOf({ now: NOW, headTime: plus(-900), lastAsOf: plus(-200) })).to.equal(NOW)
  })

  it("when the clock is ahead of the chain, asOf stays below the chain's bound", () => {
    expect(nextAsOf({ now: plus(3_600_000), headTime: NOW, lastAsOf: plus(-200) })).to.equal(plus(1750))
  })

  it('when the clock is behind the last batch, it is the time of the last batch', () => {
    expect(nextAsOf({ now: plus(-5_000), headTime: plus(-900), lastAsOf: plus(-200) })).to.equal(plus(-200))
  })

  it('when the last batch is further ahead than the chain accepts, it is null until the chain has caught up', () => {
    const lastAsOf = plus(10_000)
    expect(nextAsOf({ now: NOW, headTime: NOW, lastAsOf })).to.equal(null)
    expect(nextAsOf({ now: NOW, headTime: plus(9_000), lastAsOf })).to.equal(lastAsOf)
  })

  it('when no node responds, it is null', () => {
    expect(nextAsOf({ now: NOW, headTime: null, lastAsOf: NOW })).to.equal(null)
  })

  it('when clocks and chain move in any way, it never decreases, and no later block refuses it as too far ahead', () => {
    const moves = fc.array(fc.record({ clock: fc.integer(), block: fc.nat(5_000) }), { maxLength: 30 })
    fc.assert(
      fc.property(moves, (steps) => {
        let lastAsOf = NOW
        let headTime = NOW
        for (const { clock, block } of steps) {
          headTime = (headTime + block) as Millis
          const asOf = nextAsOf({ now: plus(clock), headTime, lastAsOf })
          if (asOf === null) continue
          expect(asOf).to.be.at.least(lastAsOf)
          expect(asOf).to.be.at.most(headTime + ACTION_AHEAD)
          lastAsOf = asOf
        }
      }),
    )
  })
})
