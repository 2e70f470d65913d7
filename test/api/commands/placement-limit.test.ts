/** The bound on placements under way, in a simulated exchange of a fixed capacity. */
import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { createPlacementLimit } from '../../../api/commands/placement-limit.ts'

const OPTIONS = { targetMs: 200, least: 32, most: 4_096 }

interface Run {
  /** Milliseconds from entering to leaving, of the orders that were accepted after the start-up. */
  readonly took: readonly number[]
  readonly accepted: number
  readonly refused: number
  readonly bound: number
}

/** Orders arrive at `offered` per second for `seconds` and are executed one after another, `capacity` per second. The first 2 s are start-up. */
function simulate({
  offered,
  capacity,
  seconds,
}: {
  offered: number
  capacity: number
  seconds: number
}): Run {
  const limit = createPlacementLimit(OPTIONS)
  const took: number[] = []
  const open: { readonly enteredAt: number; readonly endsAt: number }[] = []
  let freeAt = 0
  let accepted = 0
  let refused = 0
  for (let n = 0; n < offered * seconds; n++) {
    const now = (n * 1_000) / offered
    while (open[0] !== undefined && open[0].endsAt <= now) {
      const { enteredAt, endsAt } = open.shift() as (typeof open)[number]
      limit.leave(1, endsAt - enteredAt, endsAt)
      if (enteredAt >= 2_000) took.push(endsAt - enteredAt)
    }
    const isCounted = now >= 2_000
    if (!limit.enter(1)) {
      if (isCounted) refused += 1
      continue
    }
    if (isCounted) accepted += 1
    freeAt = Math.max(freeAt, now) + 1_000 / capacity
    open.push({ enteredAt: now, endsAt: freeAt })
  }
  return { took, accepted, refused, bound: limit.bound }
}

describe('the bound on placements under way', () => {
  it('when less than the capacity is offered, nothing is refused', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 50, max: 5_000 }),
        fc.integer({ min: 10, max: 95 }),
        (capacity, percent) => {
          const offered = Math.max(1, Math.floor((capacity * percent) / 100))
          expect(simulate({ offered, capacity, seconds: 5 })).to.include({ refused: 0, bound: OPTIONS.most })
        },
      ),
      { seed: 1, numRuns: 50 },
    )
  })

  it('when more is offered, at least nine tenths of the capacity are accepted, and answered within twice the target', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 200, max: 5_000 }),
        fc.integer({ min: 12, max: 50 }),
        (capacity, tenths) => {
          const offered = Math.floor((capacity * tenths) / 10)
          const { took, accepted } = simulate({ offered, capacity, seconds: 8 })
          expect(accepted).to.be.at.least(0.9 * 6 * capacity)
          expect(Math.max(...took)).to.be.at.most(2 * OPTIONS.targetMs)
        },
      ),
      { seed: 1, numRuns: 50 },
    )
  })

  it('when a burst arrives after a calm, all of it is accepted; when answers are fast again, the bound returns', () => {
    const limit = createPlacementLimit(OPTIONS)
    for (let n = 0; n < 1_000; n++) expect(limit.enter(1)).to.equal(true)
    for (let n = 1; n <= 1_000; n++) limit.leave(1, n, n)
    expect(limit.bound).to.be.below(1_000)
    for (let n = 0; n < OPTIONS.most + 100; n++) {
      limit.enter(1)
      limit.leave(1, 5, 2_000 + n)
    }
    expect(limit.bound).to.equal(OPTIONS.most)
  })

  it('when every answer is slow, the bound stays at its least, and a batch that is larger enters alone', () => {
    const limit = createPlacementLimit(OPTIONS)
    for (let n = 0; n < 100; n++) {
      limit.enter(1)
      limit.leave(1, 1_000, n * 1_000)
    }
    expect(limit.bound).to.equal(OPTIONS.least)
    expect(limit.enter(50)).to.equal(true)
    expect(limit.enter(1)).to.equal(false)
    limit.leave(50, 1_000, 200_000)
    for (let n = 0; n < OPTIONS.least; n++) expect(limit.enter(1)).to.equal(true)
    expect(limit.enter(1)).to.equal(false)
  })
})
