/**
 * Settlement under faults in any order: reverts, foreign nonces, forks 1 to 8 blocks deep, restarts, steps of the system clock, expiries, and
 * single actions of every kind, over preconfirmed receipts. `FAULT_RUNS` and `FAULT_SEED` take more runs or repeat one.
 */
import fc from 'fast-check'
import { after, before, describe, it } from 'mocha'
import { perpetual } from '../../support/markets.ts'
import { preconfirmed, type RpcProxy, startRpcProxy } from '../../support/rpc-proxy.ts'
import { ChainFixture, revertTo, useChain } from '../support/chain-fixture.ts'
import { anyFault, FaultRun } from '../support/fault-run.ts'

const RUNS = Number(process.env.FAULT_RUNS ?? 2)
const SEED = Number(process.env.FAULT_SEED ?? 7)

describe('settlement under faults', function () {
  this.timeout(Number(process.env.MODEL_TIMEOUT ?? 300_000))
  const chain = useChain(perpetual)
  let node: RpcProxy
  before(async () => {
    node = await startRpcProxy(chain().anvil.url, preconfirmed)
  })
  after(() => node.close())

  it('when faults come in any order, no fill is lost or repeated and the market stays open', async () => {
    const faults = fc.array(anyFault, { minLength: 10, maxLength: 24, size: 'max' })
    await fc.assert(
      fc.asyncProperty(faults, async (taken) => {
        const snapshot = await chain().provider.send('evm_snapshot', [])
        const fixture = await ChainFixture.openOn(chain())
        try {
          const run = await FaultRun.open(fixture, node.url)
          for (const fault of taken) await run.take(fault)
          await run.expectSettled()
        } finally {
          await fixture.close()
          await revertTo(chain(), snapshot)
        }
      }),
      { numRuns: RUNS, seed: SEED, endOnFailure: true },
    )
  })
})
