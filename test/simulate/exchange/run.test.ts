/** The engine keeps its laws under faults, and the simulation finds an engine that does not. */
import { resolve } from 'node:path'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { loadEngine } from '../../../simulate/exchange/engine-code.ts'
import { FAULTS } from '../../../simulate/exchange/fault-list.ts'
import { findFault } from '../../../simulate/exchange/faults.ts'
import { runExchange } from '../../../simulate/exchange/run.ts'

const SEEDS = 40
const EVENTS = 8_000

describe('the engine in simulation', () => {
  it(`under kills, freezes, partitions, failovers and clock steps, it keeps every law (${SEEDS} seeds)`, async () => {
    const engine = await loadEngine(resolve('keeper/engine'))
    for (let seed = 1; seed <= SEEDS; seed++) {
      const { violations } = await runExchange(engine, { seed, events: EVENTS })
      expect(violations, `seed ${seed}`).to.deep.equal([])
    }
  })

  it('when a seed is run again, it is the same run', async () => {
    const engine = await loadEngine(resolve('keeper/engine'))
    const runs = [1, 2].map(() => runExchange(engine, { seed: 7, events: 4_000 }))
    const [first, second] = await Promise.all(runs)
    expect(first).to.deep.equal(second)
  })

  for (const fault of FAULTS) {
    it(`given the fault that ${fault.name}, its seed finds it`, async () => {
      const { violation } = await findFault(fault)
      expect(violation).to.be.a('string')
    })
  }
})
