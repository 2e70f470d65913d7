import { expect } from 'chai'
import { describe, it } from 'mocha'
import { repeatOnContracts } from '../../simulate/contracts/repeat.ts'
import { Recorder } from '../../simulate/recorder.ts'
import { runScenario } from '../../simulate/run.ts'
import type { ScenarioName } from '../../simulate/scenarios.ts'

/** Together they have every kind of action, and a pause of the bank. */
const RUNS: readonly (readonly [ScenarioName, number])[] = [
  ['cascade', 1],
  ['outage', 1],
  ['binary', 2],
]

describe('simulated scenarios on the contracts', () => {
  const seen = new Map<string, number>()
  const note = (kind: string): Map<string, number> => seen.set(kind, (seen.get(kind) ?? 0) + 1)

  for (const [name, seed] of RUNS) {
    it(`when ${name} is repeated on the contracts, every action has the same outcome and leaves the same books`, async () => {
      const recorder = new Recorder()
      const { tally } = runScenario(name, { seed, accounts: 8, recorder })
      await repeatOnContracts(recorder, tally)
      expect(tally.violations).to.deep.equal([])
      expect(tally.checks.get('contracts')?.checked).to.be.greaterThan(500)
      for (const event of recorder.events) {
        if (event.kind === 'pause') note('pause')
        else note(event.action.kind)
        if (event.kind === 'action' && event.action.kind === 'part')
          for (const fill of event.action.fills) if (fill.forced) note('forced fill')
      }
    }).timeout(180_000)
  }

  it('when the scenarios have been repeated, every kind of action was among them', () => {
    for (const kind of ['part', 'forced fill', 'inherit', 'deleverage', 'fund', 'pause'])
      expect(seen.get(kind) ?? 0, kind).to.be.greaterThan(0)
  })
})
