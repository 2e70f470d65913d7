/** Which accounts one transaction decides on. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { type Candidates, chooseCases, MAX_CASES } from '../../../domain/risk/liquidation-cases.ts'
import type { Seq, UserId } from '../../../domain/units.ts'

const from = (first: number, count: number): UserId[] =>
  Array.from({ length: count }, (_, at) => (first + at) as UserId)

/** Numbered like its account. */
const runningOf = (accounts: readonly UserId[]): ReadonlyMap<UserId, Seq> =>
  new Map(accounts.map((account) => [account, Number(account) as Seq]))

const candidates = (more: Partial<Candidates>): Candidates => ({
  ...{ running: new Map(), last: 0 as Seq, forced: [], due: [], ordersOf: () => 1 },
  ...more,
})

describe('the accounts of a liquidation step', () => {
  it('when more liquidations run than one transaction decides on, each has its turn', () => {
    const running = runningOf(from(1, 3 * MAX_CASES))
    const seen = new Set<UserId>()
    let last = 0 as Seq
    for (let turn = 0; turn < 3; turn++) {
      const cases = chooseCases(candidates({ running, last }))
      for (const account of cases.accounts) seen.add(account)
      last = cases.last
    }
    expect(seen.size).to.equal(3 * MAX_CASES)
    expect(chooseCases(candidates({ running, last })).accounts[0]).to.equal(1)
  })

  it('when all running liquidations are stuck, a position that has just crossed the threshold starts nevertheless', () => {
    const stuck = from(1, 4 * MAX_CASES)
    const due = [...stuck, 9_000 as UserId]
    const cases = chooseCases(
      candidates({ running: runningOf(stuck), forced: [...stuck, 9_001 as UserId], due }),
    )
    expect(cases.accounts).to.include.members([9_000, 9_001])
    expect(cases.accounts).to.have.length(MAX_CASES + 2)
  })

  it('when accounts have as many orders as allowed, one transaction takes one account of each kind', () => {
    const [running, forced, due] = [from(1, 10), from(11, 10), from(21, 10)]
    const ordersOf = () => 500
    const cases = chooseCases(candidates({ running: runningOf(running), forced, due, ordersOf }))
    expect(cases).to.deep.equal({ accounts: [1, 11, 21], last: 1 })
  })

  it('when positions are due without end, no more of them are read than one transaction takes', () => {
    let read = 0
    function* due(): Generator<UserId> {
      for (;;) yield ++read as UserId
    }
    chooseCases(candidates({ due: due() }))
    expect(read).to.equal(MAX_CASES)
  })
})
