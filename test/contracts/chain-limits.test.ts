/** The largest part that settlement takes, held against what the chains it is meant for allow of one transaction. */
import { expect } from 'chai'
import hre from 'hardhat'
import { fitsOnePart, MARKET_SLOTS, PART_ORDERS, PART_SLOTS } from '../../domain/auction/parts.ts'
import type { Steps, UserId } from '../../domain/units.ts'
import { chain, crowdedExchange, type FillInput, settle } from '../support/exchange.ts'

const TOTAL_GAS = 200_000_000
const GAS_AFTER_TIME = 20_000_000
/** Only a slot that was zero costs this much to write. */
const NEW_SLOT = 20_000

/** The most orders of as many accounts, all of them new, that make one part. */
function mostNewcomers(): number {
  const left = 0 as Steps
  const newcomers = Array.from({ length: PART_ORDERS }, (_, at) => ({ account: at as UserId, left }))
  let count = PART_ORDERS
  while (!fitsOnePart(newcomers.slice(0, count))) count -= 2
  return count
}

interface Step {
  readonly op: string
  readonly gas: number
  readonly gasCost: number
}

describe('a part of the largest size', () => {
  before(function () {
    if (hre.globalOptions.coverage) this.skip()
  })

  it('takes no more new slots and gas than the chain allows, and reads the time late', async () => {
    const count = mostNewcomers()
    const exchange = await crowdedExchange(count)
    // Everybody is new to the market and to his salt word: the most that a part can write.
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
    // The market's own slots are new too, in the first batch of all.
    expect(written.length).to.equal(2 * count + MARKET_SLOTS)
    expect(written.length).to.be.at.most(PART_SLOTS)

    const read = steps.findIndex(({ op }) => op === 'TIMESTAMP')
    expect(read).to.be.greaterThan(0)
    expect(Number(steps[read]?.gas) - Number(steps.at(-1)?.gas)).to.be.below(GAS_AFTER_TIME)
  }).timeout(180_000)
})
