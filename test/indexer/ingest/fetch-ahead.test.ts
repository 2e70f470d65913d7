/** The follower fetches the next block while it records one, and a fork in between does no harm. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { ChainRecord } from '../../../indexer/ingest/chain-record.ts'
import { Follower } from '../../../indexer/ingest/follow.ts'
import type { Chain } from '../../../indexer/ports.ts'
import { catchUp, followPorts } from '../support/exchange-fixture.ts'
import { useFollowerFixture } from '../support/follower-fixture.ts'

describe('blocks that are fetched ahead', () => {
  const fixture = useFollowerFixture()

  /** `ingest` is called before each block is recorded. */
  function followerOf(chain: Chain, ingest: ChainRecord['ingest'] | null = null): Follower {
    const { exchange, test } = fixture.context
    const ports = followPorts(test, chain)
    const record = { ...ports.record, ingest: ingest ?? ports.record.ingest }
    return new Follower({ ...ports, record }, exchange.followOptions())
  }

  it('when several blocks are behind, the logs of the next one are requested while one is recorded, and of no other', async () => {
    const { exchange, test, chain } = fixture.context
    await fixture.fundAndFollow()
    await exchange.rpc('anvil_mine', '0x4')
    const requested: string[] = []
    const seen: number[] = []
    const counted: Chain = {
      ...chain,
      logsOf(hash, addresses) {
        requested.push(hash)
        return chain.logsOf(hash, addresses)
      },
    }
    const { record } = followPorts(test, chain)
    const follower = followerOf(counted, async (next) => {
      const before = requested.length
      await new Promise((resolve) => setTimeout(resolve, 50))
      const ahead = requested.slice(before - 1).filter((hash) => hash !== next.block.hash)
      seen.push(ahead.length)
      return record.ingest(next)
    })
    await catchUp(follower)
    expect(seen).to.deep.equal([1, 1, 1, 0])
    expect(requested, 'no block is fetched twice').to.have.length(4)
    await fixture.audit()
  })

  it('when a fork replaces the block that was fetched ahead, it is not recorded, and the tables are those of the new chain', async () => {
    const { exchange, test, chain, alice, bob } = fixture.context
    await fixture.fundAndFollow()
    await exchange.deposit(alice, '7')
    const { record } = followPorts(test, chain)
    let forks = 0
    const follower = followerOf(chain, async (next) => {
      if (next.facts.length === 0 && forks++ === 0) {
        await new Promise((resolve) => setTimeout(resolve, 50))
        await exchange.rpc('anvil_reorg', 3, [])
        await exchange.deposit(bob, '5')
      }
      return record.ingest(next)
    })
    // The node no longer knows a block of the old fork by its hash: the pass ends, and the next one starts over.
    await follower.pass().catch(() => {})
    await catchUp(follower)
    expect(forks).to.be.greaterThan(0)
    await catchUp(fixture.context.follower)
    await fixture.audit()
    await fixture.expectSameAsFresh()
  })

  it('when the fetch ahead fails, the block is fetched again', async () => {
    const { exchange, chain } = fixture.context
    await fixture.fundAndFollow()
    await exchange.rpc('anvil_mine', '0x2')
    let requests = 0
    const failing: Chain = {
      ...chain,
      logsOf: (hash, addresses) =>
        ++requests === 2 ? Promise.reject(new Error('node down')) : chain.logsOf(hash, addresses),
    }
    expect(await followerOf(failing).pass()).to.equal(true)
    expect(requests).to.equal(3)
    await fixture.audit()
  })
})
