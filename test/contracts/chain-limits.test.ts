/** The largest settlement part compared with the limits per transaction of the target chains. */
import { expect } from 'chai'
import hre from 'hardhat'
import { fitsOnePart, MARKET_SLOTS, MAX_PART_ORDERS, MAX_PART_SLOTS } from '../../domain/auction/parts.ts'
import type { Steps, UserId } from '../../domain/units.ts'
import { chain, crowdedExchange, type FillInput, settle } from '../support/exchange.ts'

const TOTAL_GAS = 200_000_000
const GAS_AFTER_TIME = 20_000_000
/** Cost of an SSTORE to a slot that was zero; no other write costs as much. */
const NEW_SLOT = 20_000

/** The largest number of orders, each of a new account, that fits into one part. */
function mostNewcomers(): number {
  const remaining = 0 as Steps
  const newcomers = Array.from({ length: MAX_PART_ORDERS }, (_, at) => ({ account: at as UserId, remaining }))
  let count = MAX_PART_ORDERS
  while (!fitsOnePart(newcomers.slice(0, count))) count -= 2
  return count
}

interface Step {
  readonly op: string
  readonly gas: number
  readonly gasCost: number
}

describe('a part of the maximum size', () => {
  before(function () {
    if (hre.globalOptions.coverage) this.skip()
  })

  it('stays within the chain’s limits for new slots and gas, and reads the block time late', async () => {
    const count = mostNewcomers()
    const exchange = await crowdedExchange(count)
    // Every account is new to the market, with a salt word of its own: the maximum number of writes in a part.
    const fills = exchange.users.map((by, index): FillInput => {
      const side = index % 2 === 0 ? 'LONG' : 'SHORT'
      return { by, side, fill: 10, salt: BigInt(index) << 20n }
    })
    const sent = await settle(exchange, { price: 500_000, fills })
    const receipt = await sent.wait()
    expect(Number(receipt?.gasUsed)).to.be.below(TOTAL_GAS)

    const { provider } = (await chain()).ethers
    const options = { disableMemory: true, disableStack: true, disableStorage: true }
    const trace = await provider.send('debug_traceTransaction', [sent.hash, options])
    const steps = trace.structLogs as Step[]
    const written = steps.filter(({ op, gasCost }) => op === 'SSTORE' && Number(gasCost) >= NEW_SLOT)
    // The market's own slots are also new in its first batch.
    expect(written.length).to.equal(2 * count + MARKET_SLOTS)
    expect(written.length).to.be.at.most(MAX_PART_SLOTS)

    const read = steps.findIndex(({ op }) => op === 'TIMESTAMP')
    expect(read).to.be.greaterThan(0)
    expect(Number(steps[read]?.gas) - Number(steps.at(-1)?.gas)).to.be.below(GAS_AFTER_TIME)
  }).timeout(180_000)
})
