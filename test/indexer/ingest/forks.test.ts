/** The follower where the chain or the node is not what it was a moment ago. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { OtherChainError } from '../../../indexer/ingest/blocks.ts'
import type { Chain } from '../../../indexer/ports.ts'
import { chainState } from '../support/audit.ts'
import { matchPart } from '../support/desk.ts'
import { useStage } from '../support/stage.ts'
import { catchUp, projectAll } from '../support/world.ts'

describe('following a chain that changes its mind', () => {
  const stage = useStage()

  // ---------------------------------------------------------------------- forks

  it('given a reorg, it rolls back and follows the new chain to what a fresh database finds', async () => {
    const { world, test, follower, alice } = stage.scene
    await stage.fundAndFollow()
    const part = await world.part(stage.pair(500))
    const hash = await world.send(part)
    await matchPart(test.db, part, hash)
    await world.deposit(alice, '7')
    await catchUp(follower)
    await projectAll(test)

    // The four blocks of the part and the deposit are gone, and the same heights are empty.
    await world.rpc('anvil_reorg', 4, [])
    await catchUp(follower)
    await stage.audit()
    const fills = await test.db.selectFrom('read.fills').select('status').execute()
    expect(fills.map(({ status }) => status)).to.deep.equal(['RETRYING', 'RETRYING'])
    const orders = await test.db.selectFrom('read.orders').select(['status', 'settling']).execute()
    expect(orders).to.deep.equal(Array(2).fill({ status: 'OPEN', settling: 500 }))

    await world.send(part)
    await catchUp(follower)
    await stage.audit()
    expect(await stage.mismatches()).to.deep.equal([])
    await stage.expectSameAsFresh()
  })

  it('given a chain that was cut short, it waits, and follows once there is more', async () => {
    const { world, follower, alice, bob } = stage.scene
    await stage.fund()
    const early = await world.rpc<string>('evm_snapshot')
    await world.deposit(alice, '7')
    await catchUp(follower)
    await world.rpc('evm_revert', early)
    expect(await follower.pass(), 'a node that is behind').to.equal(false)
    await world.deposit(bob, '1')
    await world.deposit(bob, '2')
    await catchUp(follower)
    await stage.audit()
    await stage.expectSameAsFresh()
  })

  it('given a reorg at the same height, it notices without a new block', async () => {
    const { world, test, follower } = stage.scene
    await stage.fundAndFollow()
    await world.rpc('anvil_reorg', 1, [])
    await catchUp(follower)
    await stage.audit()
    expect(
      await test.db.selectFrom('accounts').select('free').where('free', '=', 0n).execute(),
    ).to.have.length(1)
  })

  it('given an unknown part whose block leaves the chain, nothing of it is left', async () => {
    const { world, test, follower } = stage.scene
    await stage.fund()
    await world.send(await world.part(stage.pair(500)))
    await catchUp(follower)
    await projectAll(test)
    await world.rpc('anvil_reorg', 1, [])
    await catchUp(follower)
    await stage.audit()
    expect(await test.db.selectFrom('read.fills').selectAll().execute()).to.deep.equal([])
    const matched = await test.db.selectFrom('positions').select('matched_size').execute()
    expect(matched).to.deep.equal([{ matched_size: 0 }, { matched_size: 0 }])
  })

  // ---------------------------------------------------------------------- completeness

  it('given a long way to the head, it goes by ranges and finds the same', async () => {
    const { world, test, chain } = stage.scene
    await stage.fund()
    await world.rpc('anvil_mine', '0x40')
    await world.send(await world.part(stage.pair(500)))
    await world.rpc('anvil_mine', '0x20')
    const live = await stage.freshDatabase()
    await catchUp(world.follower(live, chain, { liveDepth: 10_000 }))
    await catchUp(world.follower(test, chain, { range: 30, liveDepth: 3 }))
    expect(await chainState(test.db)).to.deep.equal(await chainState(live.db))
    const stored = await test.db.selectFrom('chain_blocks').select('number').execute()
    expect(stored.length, 'empty blocks are grouped').to.be.lessThan(40)
  })

  it('given two followers at once, every block counts once', async () => {
    const { world, test, chain, follower } = stage.scene
    await stage.fundAndFollow()
    await stage.trade(stage.pair(500))
    await world.rpc('anvil_mine', '0x5')
    const other = world.follower(test, chain)
    const passes = await Promise.allSettled([follower.pass(), other.pass(), follower.pass(), other.pass()])
    expect(passes.map(({ status }) => status)).to.deep.equal(Array(4).fill('fulfilled'))
    await catchUp(follower)
    await stage.audit()
    const settled = await test.db.selectFrom('journal').select('row').execute()
    expect(settled.filter(({ row }) => row.kind === 'part_settled')).to.have.length(1)
  })

  it('given the database of another chain, it refuses with both genesis hashes', async () => {
    const { world, test, chain, follower } = stage.scene
    await catchUp(follower)
    await test.db.updateTable('chain_progress').set({ genesis_hash: '0xother' }).execute()
    const refusal = await world
      .follower(test, chain)
      .pass()
      .catch((error: Error) => error)
    expect(refusal).to.be.instanceOf(OtherChainError)
    expect((refusal as Error).message).to.include('0xother')
  })

  it('given a node that is away, it throws, and goes on where it was once the node is back', async () => {
    const { world, test, chain, follower, alice } = stage.scene
    await stage.fundAndFollow()
    await world.deposit(alice, '3')
    const away = { ...chain, head: () => Promise.reject(new Error('away')) }
    expect(
      await world
        .follower(test, away)
        .pass()
        .catch((error: Error) => error.message),
    ).to.equal('away')
    await catchUp(follower)
    await stage.audit()
  })

  it('given a node whose logs are of another fork than its blocks, it records nothing', async () => {
    const { world, test, chain, follower, alice } = stage.scene
    await catchUp(follower)
    await world.deposit(alice, '3')
    const split: Chain = {
      ...chain,
      logsOf: async (hash, addresses) =>
        (await chain.logsOf(hash, addresses)).map((log) => ({ ...log, blockHash: '0xother' })),
    }
    expect(
      await world
        .follower(test, split)
        .pass()
        .catch((error: Error) => error.name),
    ).to.equal('NodeChangedItsMind')
    await catchUp(follower)
    await stage.audit()
  })
})
