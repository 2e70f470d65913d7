/** The follower across forks, backfills, concurrent followers and nodes that fail or contradict themselves. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { OtherChainError } from '../../../indexer/ingest/bind-chain.ts'
import type { Chain } from '../../../indexer/ports.ts'
import { withMirror } from '../../support/mirror.ts'
import { chainState } from '../support/audit.ts'
import { catchUp, projectAll } from '../support/exchange-fixture.ts'
import { useFollowerFixture } from '../support/follower-fixture.ts'
import { matchPart } from '../support/matched-part.ts'

describe('following a chain that forks', () => {
  const fixture = useFollowerFixture()

  // ---------------------------------------------------------------------- forks

  it('when a reorg removes a part, it rolls back and reaches the state of a fresh database on the new chain', async () => {
    const { exchange, test, follower, alice } = fixture.context
    await fixture.fundAndFollow()
    const part = await exchange.part(fixture.pair(500))
    const hash = await exchange.send(part)
    await matchPart(test, part, hash)
    await exchange.deposit(alice, '7')
    await catchUp(follower)
    await projectAll(test)

    // Replaces the four blocks of the part and the deposit by empty ones.
    await exchange.rpc('anvil_reorg', 4, [])
    await catchUp(follower)
    await fixture.audit()
    const fills = await test.db.selectFrom('read.fills').select('status').execute()
    expect(fills.map(({ status }) => status)).to.deep.equal(['RETRYING', 'RETRYING'])
    const orders = await test.db.selectFrom('read.orders').select(['status', 'settling']).execute()
    expect(orders).to.deep.equal(Array(2).fill({ status: 'OPEN', settling: 500 }))

    await exchange.send(part)
    await catchUp(follower)
    await fixture.audit()
    expect(await fixture.mismatches()).to.deep.equal([])
    await fixture.expectSameAsFresh()
  })

  it('when the head moves back, it waits and continues once the chain is longer', async () => {
    const { exchange, follower, alice, bob } = fixture.context
    await fixture.fund()
    const early = await exchange.rpc<string>('evm_snapshot')
    await exchange.deposit(alice, '7')
    await catchUp(follower)
    await exchange.rpc('evm_revert', early)
    expect(await follower.pass(), 'a node that is behind').to.equal(false)
    await exchange.deposit(bob, '1')
    await exchange.deposit(bob, '2')
    await catchUp(follower)
    await fixture.audit()
    await fixture.expectSameAsFresh()
  })

  it('when a reorg replaces the head at the same height, it rolls back without a new block', async () => {
    const { exchange, test, follower } = fixture.context
    await fixture.fundAndFollow()
    await exchange.rpc('anvil_reorg', 1, [])
    await catchUp(follower)
    await fixture.audit()
    expect(
      await withMirror(test.db).selectFrom('accounts').select('free').where('free', '=', 0n).execute(),
    ).to.have.length(1)
  })

  it('when the block of a part without matched fills is rolled back, no trace of the part is left', async () => {
    const { exchange, test, follower } = fixture.context
    await fixture.fund()
    await exchange.send(await exchange.part(fixture.pair(500)))
    await catchUp(follower)
    await projectAll(test)
    await exchange.rpc('anvil_reorg', 1, [])
    await catchUp(follower)
    await fixture.audit()
    expect(await test.db.selectFrom('read.fills').selectAll().execute()).to.deep.equal([])
    const matched = await withMirror(test.db).selectFrom('positions').select('matched_size').execute()
    expect(matched).to.deep.equal([{ matched_size: 0 }, { matched_size: 0 }])
  })

  // ---------------------------------------------------------------------- completeness

  it('when the head is far ahead, it backfills by range to the same state', async () => {
    const { exchange, test, chain } = fixture.context
    await fixture.fund()
    await exchange.rpc('anvil_mine', '0x40')
    await exchange.send(await exchange.part(fixture.pair(500)))
    await exchange.rpc('anvil_mine', '0x20')
    const live = await fixture.freshDatabase()
    await catchUp(exchange.follower(live, chain, { liveDepth: 10_000 }))
    await catchUp(exchange.follower(test, chain, { range: 30, liveDepth: 3 }))
    expect(await chainState(test.db)).to.deep.equal(await chainState(live.db))
    const stored = await test.db.selectFrom('chain_blocks').select('number').execute()
    expect(stored.length, 'empty blocks are grouped').to.be.lessThan(40)
  })

  it('when two followers run concurrently, each block is applied once', async () => {
    const { exchange, test, chain, follower } = fixture.context
    await fixture.fundAndFollow()
    await fixture.trade(fixture.pair(500))
    await exchange.rpc('anvil_mine', '0x5')
    const other = exchange.follower(test, chain)
    const passes = await Promise.allSettled([follower.pass(), other.pass(), follower.pass(), other.pass()])
    expect(passes.map(({ status }) => status)).to.deep.equal(Array(4).fill('fulfilled'))
    await catchUp(follower)
    await fixture.audit()
    const settled = await test.db.selectFrom('journal').select('row').execute()
    expect(settled.filter(({ row }) => row.kind === 'part_settled')).to.have.length(1)
  })

  it('when the database belongs to another chain, it throws an error with its genesis hash', async () => {
    const { exchange, test, chain, follower } = fixture.context
    await catchUp(follower)
    await test.db.updateTable('chain_progress').set({ genesis_hash: '0xother' }).execute()
    const failure = await exchange
      .follower(test, chain)
      .pass()
      .catch((error: Error) => error)
    expect(failure).to.be.instanceOf(OtherChainError)
    expect((failure as Error).message).to.include('0xother')
  })

  it('when the node is down, the pass throws, and the next pass continues where it was', async () => {
    const { exchange, test, chain, follower, alice } = fixture.context
    await fixture.fundAndFollow()
    await exchange.deposit(alice, '3')
    const down = { ...chain, head: () => Promise.reject(new Error('node down')) }
    expect(
      await exchange
        .follower(test, down)
        .pass()
        .catch((error: Error) => error.message),
    ).to.equal('node down')
    await catchUp(follower)
    await fixture.audit()
  })

  it('when logs belong to another fork than their block, it records nothing', async () => {
    const { exchange, test, chain, follower, alice } = fixture.context
    await catchUp(follower)
    await exchange.deposit(alice, '3')
    const inconsistent: Chain = {
      ...chain,
      logsOf: async (hash, addresses) =>
        (await chain.logsOf(hash, addresses)).map((log) => ({ ...log, blockHash: '0xother' })),
    }
    expect(
      await exchange
        .follower(test, inconsistent)
        .pass()
        .catch((error: Error) => error.name),
    ).to.equal('InconsistentNodeError')
    await catchUp(follower)
    await fixture.audit()
  })
})
