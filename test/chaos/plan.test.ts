import { expect } from 'chai'
import { describe, it } from 'mocha'
import { planOf, repeatFlags } from './plan.ts'
import { cellsOf, EXCHANGES, FAULTS, MEANINGS, REASONS, TABLE, TARGETS, tableText } from './table.ts'

/** Runs in which each cell of both exchanges occurs, with three faults in each. */
const RUNS = 150

describe('the plan of a fault campaign', () => {
  it('when the seed is the same, the runs are the same, whatever their number', () => {
    const long = planOf({ seed: 7 }, 40)
    expect(planOf({ seed: 7 }, 12)).to.deep.equal(long.slice(0, 12))
    expect(planOf({ seed: 8 }, 40)).not.to.deep.equal(long)
  })

  it('when a campaign is long, every cell of the table occurs', () => {
    const runs = planOf({ seed: 1 }, RUNS)
    for (const exchange of EXCHANGES) {
      const played = runs.filter((run) => run.exchange === exchange).flatMap(({ faults }) => faults)
      const names = new Set(played.map(({ fault, target }) => `${fault} ${target}`))
      expect(
        cellsOf(exchange).filter(({ fault, target }) => !names.has(`${fault} ${target}`)),
        exchange,
      ).to.deep.equal([])
    }
  })

  it('when a run is planned, it has three faults that do not overlap', () => {
    for (const { faults } of planOf({ seed: 3 }, RUNS)) {
      expect(faults).to.have.length(3)
      const ends = faults.map(({ at, lasts }) => at + lasts)
      for (const [index, { at }] of faults.entries())
        if (index > 0) expect(at).to.be.greaterThan(ends[index - 1] as number)
    }
  })

  it('when a run is repeated, its flags have the seed and its number, and it is in the group of its exchange', () => {
    const terms = { seed: 5, exchange: 'machine' } as const
    const run = planOf(terms, 9).at(-1)
    expect(run && repeatFlags(terms, run)).to.equal('--seed 5 --run 9 --exchange machine')
    expect(run).to.include({ first: 7, exchange: 'machine' })
    expect(new Set(planOf(terms, RUNS).map(({ exchange }) => exchange))).to.deep.equal(new Set(['machine']))
  })
})

describe('the table of fault × process', () => {
  it('when a cell names a reason, the reason exists and is in use', () => {
    const used = new Set(
      FAULTS.flatMap((fault) => TARGETS.map((target) => TABLE[fault][target])).filter(
        (cell) => typeof cell === 'string',
      ),
    )
    expect([...used].sort()).to.deep.equal(Object.keys(REASONS).sort())
    for (const fault of FAULTS) expect(Object.keys(TABLE[fault])).to.have.members([...TARGETS])
  })

  it('when it is printed, each fault has its effect and a row with all processes', () => {
    const lines = tableText().split('\n')
    for (const fault of FAULTS) {
      const rows = lines.filter((line) => line.startsWith(`${fault}  `))
      expect(rows[0], fault).to.include(MEANINGS[fault])
      expect(rows[1]?.slice(fault.length).trim().split(/ +/), fault).to.have.length(TARGETS.length)
    }
  })
})
