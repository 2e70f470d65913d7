/**
 * Settlement under faults in any order: reverts, foreign nonces, forks 1 to 8 blocks deep, restarts, steps of the system clock, expiries, and
 * single actions of every kind, over preconfirmed receipts; then the end of the market under the same faults. `FAULT_RUNS` plays more runs, and
 * `FAULT_SEED` with the `FAULT_PATH` of a failure repeats one.
 */
import { expect } from 'chai'
import fc from 'fast-check'
import { after, before, describe, it } from 'mocha'
import type { Millis } from '../../../domain/units.ts'
import { ShadowRun } from '../../../stack/shadow/shadow-run.ts'
import { perpetual } from '../../support/markets.ts'
import { preconfirmed, type RpcProxy, startRpcProxy } from '../../support/rpc-proxy.ts'
import { anyFault, anyLateFault } from '../support/any-fault.ts'
import { ChainFixture, useChain } from '../support/chain-fixture.ts'
import { EndingRun } from '../support/ending-run.ts'
import { FaultRun } from '../support/fault-run.ts'
import { restoreChain, saveChain } from '../support/saved-chain.ts'

const RUNS = Number(process.env.FAULT_RUNS ?? 2)
const SEED = Number(process.env.FAULT_SEED ?? 7)
const PATH = process.env.FAULT_PATH
/** A local chain accepts one of minutes. */
const DISPUTE_WINDOW = 120_000 as Millis

describe('settlement under faults', function () {
  this.timeout(Number(process.env.MODEL_TIMEOUT ?? 300_000))
  const chain = useChain({ ...perpetual, disputeWindow: DISPUTE_WINDOW })
  let node: RpcProxy
  before(async () => {
    node = await startRpcProxy(chain().anvil.url, preconfirmed)
  })
  after(() => node.close())

  it('when faults come in any order, no fill is lost or repeated, and the market stays open until it ends with all accounts paid out', async () => {
    const faults = fc.array(anyFault, { minLength: 10, maxLength: 24, size: 'max' })
    const late = fc.array(anyLateFault, { minLength: 2, maxLength: 8, size: 'max' })
    const counts: Record<string, number> = {}
    await fc.assert(
      fc.asyncProperty(faults, late, fc.integer({ min: 1, max: 8 }), async (taken, lateTaken, depth) => {
        const saved = await saveChain(chain())
        const fixture = await ChainFixture.openOn(chain())
        try {
          const run = await FaultRun.open(fixture, node.url)
          for (const fault of taken) await run.take(fault)
          await run.expectSettled()
          await new EndingRun(run).play(lateTaken, depth)
          expect(await new ShadowRun(fixture.db).compare()).to.deep.equal([])
          for (const [name, count] of Object.entries(run.counts)) counts[name] = (counts[name] ?? 0) + count
        } finally {
          await fixture.close()
          await restoreChain(chain(), saved)
        }
      }),
      { numRuns: RUNS, seed: SEED, endOnFailure: true, ...(PATH !== undefined && { path: PATH }) },
    )
    if (process.env.MODEL_VERBOSE) console.log(counts)
  })
})
