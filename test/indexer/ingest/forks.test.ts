/** The follower where the chain or the node is not what it was a moment ago. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { OtherChainError } from '../../../indexer/ingest/blocks.ts'
import type { Chain } from '../../../indexer/ports.ts'
import { chainState } from '../support/audit.ts'
import { catchUp, projectAll } from '../support/exchange-fixture.ts'
import { useFollowerFixture } from '../support/follower-fixture.ts'
import { matchPart } from '../support/matched-part.ts'

describe('following a chain that changes its mind', () => {
  const fixture = useFollowerFixture()

  // ---------------------------------------------------------------------- forks

  it('given a reorg, it rolls back and follows the new chain to what a fresh database finds', async () => {
    const { exchange, test, follower, alice } = fixture.context
    await fixture.fundAndFollow()
    const part = await exchange.part(fixture.pair(500))
    const hash = await exchange.send(part)
    await matchPart(test.db, part, hash)
    await exchange.deposit(alice, '7')
    await catchUp(follower)
    await projectAll(test)

    // The four blocks of the part and the deposit are gone, and the same heights are empty.
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

  it('given a chain that was cut short, it waits, and follows once there is more', async () => {
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

  it('given a reorg at the same height, it notices without a new block', async () => {
    const { exchange, test, follower } = fixture.context
    await fixture.fundAndFollow()
    await exchange.rpc('anvil_reorg', 1, [])
    await catchUp(follower)
    await fixture.audit()
    expect(
      await test.db.selectFrom('accounts').select('free').where('free', '=', 0n).execute(),
    ).to.have.length(1)
  })

  it('given an unknown part whose block leaves the chain, nothing of it is left', async () => {
    const { exchange, test, follower } = fixture.context
    await fixture.fund()
    await exchange.send(await exchange.part(fixture.pair(500)))
    await catchUp(follower)
    await projectAll(test)
    await exchange.rpc('anvil_reorg', 1, [])
    await catchUp(follower)
    await fixture.audit()
    expect(await test.db.selectFrom('read.fills').selectAll().execute()).to.deep.equal([])
    const matched = await test.db.selectFrom('positions').select('matched_size').execute()
    expect(matched).to.deep.equal([{ matched_size: 0 }, { matched_size: 0 }])
  })

  // ---------------------------------------------------------------------- completeness

  it('given a long way to the head, it goes by ranges and finds the same', async () => {
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

  it('given two followers at once, every block counts once', async () => {
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

  it('given the database of another chain, it refuses with both genesis hashes', async () => {
    const { exchange, test, chain, follower } = fixture.context
    await catchUp(follower)
    await test.db.updateTable('chain_progress').set({ genesis_hash: '0xother' }).execute()
    const refusal = await exchange
      .follower(test, chain)
      .pass()
      .catch((error: Error) => error)
    expect(refusal).to.be.instanceOf(OtherChainError)
    expect((refusal as Error).message).to.include('0xother')
  })

  it('given a node that is away, it throws, and goes on where it was once the node is back', async () => {
    const { exchange, test, chain, follower, alice } = fixture.context
    await fixture.fundAndFollow()
    await exchange.deposit(alice, '3')
    const away = { ...chain, head: () => Promise.reject(new Error('away')) }
    expect(
      await exchange
        .follower(test, away)
        .pass()
        .catch((error: Error) => error.message),
    ).to.equal('away')
    await catchUp(follower)
    await fixture.audit()
  })

  it('given a node whose logs are of another fork than its blocks, it records nothing', async () => {
    const { exchange, test, chain, follower, alice } = fixture.context
    await catchUp(follower)
    await exchange.deposit(alice, '3')
    const split: Chain = {
      ...chain,
      logsOf: async (hash, addresses) =>
        (await chain.logsOf(hash, addresses)).map((log) => ({ ...log, blockHash: '0xother' })),
    }
    expect(
      await exchange
        .follower(test, split)
        .pass()
        .catch((error: Error) => error.name),
    ).to.equal('InconsistentNodeError')
    await catchUp(follower)
    await fixture.audit()
  })
})
