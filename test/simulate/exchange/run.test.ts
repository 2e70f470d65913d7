/** The engine keeps its laws under faults, and the simulation finds an engine that does not. */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { loadEngine, loadScenario, SCENARIOS } from '../../../simulate/exchange/engine-code.ts'
import { FAULTS, findFault } from '../../../simulate/exchange/faults.ts'
import { runExchange } from '../../../simulate/exchange/run.ts'

const ROOT = resolve('.')
const SEEDS = { ledger: 20, trading: 6 } as const
/** `npm run simulate:exchange -- --faults` checks all of them. */
const SHARE_OF_FAULTS = 3
const EVENTS = 8_000

describe('the engine in simulation', function () {
  this.timeout(300_000)
  for (const name of SCENARIOS) {
    it(`under kills, freezes, partitions, failovers and clock steps, the ${name} keeps every law (${SEEDS[name]} seeds)`, async () => {
      const engine = await loadEngine(ROOT)
      const newScenario = await loadScenario(ROOT, name)
      for (let seed = 1; seed <= SEEDS[name]; seed++) {
        const { violations } = await runExchange(engine, newScenario(), { seed, events: EVENTS })
        expect(violations, `seed ${seed}`).to.deep.equal([])
      }
    })
  }

  it('when a seed is run again, it is the same run', async () => {
    const engine = await loadEngine(ROOT)
    for (const name of SCENARIOS) {
      const newScenario = await loadScenario(ROOT, name)
      const runs = [1, 2].map(() => runExchange(engine, newScenario(), { seed: 7, events: 4_000 }))
      const [first, second] = await Promise.all(runs)
      expect(first).to.deep.equal(second)
    }
  })

  it('given any fault of the list, the passage that it replaces stands once in its file', () => {
    for (const { name, file, passage } of FAULTS)
      expect(readFileSync(file, 'utf8').split(passage), name).to.have.length(2)
  })

  for (const fault of FAULTS.filter((_, at) => at % SHARE_OF_FAULTS === 0)) {
    it(`given the fault that ${fault.name}, its seed finds it`, async () => {
      const { violation } = await findFault(fault)
      expect(violation).to.be.a('string')
    })
  }
})
