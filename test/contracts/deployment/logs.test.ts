import { expect } from 'chai'
import type { Filter, Log } from 'ethers'
import { logsOf } from '../../../ignition/logs.ts'
import { chain, perpetualExchange } from '../../support/exchange.ts'
import { expectRejected } from '../../support/refusals.ts'

/** The test chain as a node that limits the blocks of a query, and counts the queries. */
async function limited(most: number) {
  const { bank, connection } = await (await chain()).networkHelpers.loadFixture(perpetualExchange)
  await connection.networkHelpers.mine(100)
  const { provider } = connection.ethers
  const queries: (readonly [from: number, to: number])[] = []
  const getLogs = async ({ fromBlock, toBlock, ...filter }: Filter): Promise<Log[]> => {
    const [from, to] = [Number(fromBlock), Number(toBlock)]
    queries.push([from, to])
    if (to - from + 1 > most) throw new Error(`query exceeds max block range ${most}`)
    return provider.getLogs({ ...filter, fromBlock: from, toBlock: to })
  }
  const filter = { address: [await bank.getAddress()], topics: [] }
  const head = await provider.getBlockNumber()
  const all = await provider.getLogs({ ...filter, fromBlock: 0, toBlock: head })
  return { node: { getLogs } as never, filter, head, all, queries }
}

const placesOf = (logs: readonly Log[]) => logs.map(({ blockNumber, index }) => [blockNumber, index])

describe('logsOf', () => {
  for (const most of [1, 7, 64, 10_000])
    it(`when the node allows ${most} blocks per query, it returns every log once, in order`, async () => {
      const { node, filter, head, all } = await limited(most)
      expect(all.length).to.be.greaterThan(5)
      expect(placesOf(await logsOf(node, filter, 0, head))).to.deep.equal(placesOf(all))
    })

  it('when the node allows fewer blocks, it needs at most a few queries per allowed range', async () => {
    const { node, filter, head, queries } = await limited(16)
    await logsOf(node, filter, 0, head)
    expect(queries.length).to.be.at.most(2 * Math.ceil(head / 16) + 16)
  })

  it('when the node fails for a single block, it throws the error of the node', async () => {
    const { node, filter, head } = await limited(0)
    await expectRejected(logsOf(node, filter, 0, head), /query exceeds max block range 0/)
  })
})
