/** The follower over an engine, on a real chain: forks, lost replies, repeated blocks, and an engine that ends within a block. */
import { expect } from 'chai'
import { beforeEach, describe, it } from 'mocha'
import { ForkTooDeepError } from '../../../indexer/ingest/engine-record.ts'
import type { Follower, FollowOptions } from '../../../indexer/ingest/follow.ts'
import { EngineError } from '../../../keeper/engine/link/engine.ts'
import { TestUSDM__factory } from '../../../typechain-types/factories/TestUSDM__factory.ts'
import type { LocalEngine, LocalEngineOptions } from '../../support/local-engine.ts'
import { e18 } from '../../support/markets.ts'
import { chainState, expectConservation, expectPositions } from '../support/audit.ts'
import { catchUp, type ExchangeDatabase, followPorts } from '../support/exchange-fixture.ts'
import { useFollowerFixture } from '../support/follower-fixture.ts'

describe('the follower over an engine', () => {
  const fixture = useFollowerFixture()
  let followed: ExchangeDatabase
  let engine: LocalEngine
  let follower: Follower

  async function open(options: LocalEngineOptions = {}): Promise<void> {
    followed = await fixture.freshDatabase(options)
    engine = followed.engine
    follower = newFollower()
  }

  /** As after a start of its process. */
  function newFollower(options: Partial<FollowOptions> = {}): Follower {
    const { exchange, chain } = fixture.context
    return exchange.follower(followed, chain, options)
  }

  beforeEach(() => open())

  /** The tables are those of the contracts, and of an engine to which a follower has sent every block of the present chain once. */
  async function expectSameAsFresh(options: Partial<FollowOptions> = {}): Promise<void> {
    const { exchange, chain, users } = fixture.context
    const fresh = await fixture.freshDatabase()
    await catchUp(exchange.follower(fresh, chain, options))
    expect(await chainState(followed.db)).to.deep.equal(await chainState(fresh.db))
    expect(await mismatchesOf(followed)).to.deep.equal(await mismatchesOf(fresh))
    if (options.startBlock !== undefined) return
    await expectConservation(exchange, followed.db, users)
    await expectPositions(exchange, followed.db, users)
  }

  const mismatchesOf = ({ db }: ExchangeDatabase) =>
    db.selectFrom('settlement_mismatches').select(['failure_kind', 'tx_hash']).orderBy('tx_hash').execute()

  /** Three deposits for each of both accounts. */
  async function depositInOneBlock(): Promise<void> {
    const { exchange, alice, bob } = fixture.context
    const admin = await exchange.provider.getSigner(0)
    const usdm = TestUSDM__factory.connect(exchange.shared.usdm, admin)
    await (await usdm.mint(admin.address, e18('6'))).wait()
    await (await usdm.approve(exchange.shared.marginBank, e18('6'))).wait()
    await exchange.rpc('evm_setAutomine', false)
    for (const { address } of [alice, bob, alice, bob, alice, bob]) {
      const data = exchange.bank.interface.encodeFunctionData('depositFor', [address, e18('1')])
      const call = { from: admin.address, to: exchange.shared.marginBank, data, gas: '0x493e0' }
      await exchange.rpc('eth_sendTransaction', call)
    }
    await exchange.rpc('evm_mine')
    await exchange.rpc('evm_setAutomine', true)
  }

  const applied = () => engine.log.filter(({ kind }) => kind === 'apply_block').length

  it('when blocks have deposits and a part that the engine has not matched, the tables equal the contracts', async () => {
    const { exchange } = fixture.context
    await fixture.fund()
    await depositInOneBlock()
    await exchange.send(await exchange.part(fixture.pair(500)))
    await catchUp(follower)
    await expectSameAsFresh()
  })

  it('when the rules do not explain a part, the positions are read from the contract, and the mismatch is stored', async () => {
    const { exchange, alice, bob } = fixture.context
    await fixture.fund()
    await exchange.send(await exchange.part(fixture.pair(500)))
    const late = { startBlock: (await fixture.context.chain.head()).number + 1 }
    await fixture.fund()
    const fills = fixture.pair(200)
    const swapped = fills.map((fill) => ({ ...fill, by: fill.by === alice ? bob : alice }))
    await exchange.send(await exchange.part(swapped))
    await catchUp(newFollower(late))
    expect(engine.log.map(({ answer }) => (answer as { kind: string }).kind)).to.include('positions_needed')
    expect(await mismatchesOf(followed)).to.have.length(1)
    await expectSameAsFresh(late)
  })

  it('when a fork replaces blocks with facts, they are rolled back, and the tables are those of the new chain', async () => {
    const { exchange, alice, bob } = fixture.context
    await fixture.fund()
    await catchUp(follower)
    await exchange.deposit(alice, '7')
    await catchUp(follower)
    await exchange.rpc('anvil_reorg', 3, [])
    await exchange.deposit(bob, '5')
    await catchUp(follower)
    expect(engine.log.map(({ kind }) => kind)).to.include('roll_back')
    await expectSameAsFresh()
  })

  it('when the reply to a block is lost, the next pass continues behind it, and nothing is applied twice', async () => {
    await fixture.fund()
    engine.lost.push('apply_block')
    const error = await follower.pass().catch((thrown: unknown) => thrown)
    expect(error).to.be.instanceOf(EngineError)
    await catchUp(follower)
    await expectSameAsFresh()
  })

  it('when a block comes twice, the second one changes nothing', async () => {
    await fixture.fund()
    await catchUp(follower)
    const { exchange, chain } = fixture.context
    const block = await chain.head()
    const { record } = followPorts(followed, chain)
    const before = await chainState(followed.db)
    const outcome = await record.ingest({ from: block.number, block, facts: [], mismatches: [] })
    expect(outcome).to.deep.equal({ kind: 'recorded', mismatches: [] })
    expect(await chainState(followed.db)).to.deep.equal(before)
    await exchange.deposit(fixture.context.alice, '1')
    await catchUp(follower)
    await expectSameAsFresh()
  })

  it('when the engine ends within a block that it applies in slices, the next one continues at the log', async () => {
    await open({ chainRules: { sliceAccounts: 1 } })
    const { exchange } = fixture.context
    await fixture.fund()
    await depositInOneBlock()
    await exchange.send(await exchange.part(fixture.pair(500)))
    for (let cuts = 0; cuts < 50; cuts++) {
      engine.stepsLeft = 2
      const end = await newFollower()
        .pass()
        .catch((thrown: unknown) => thrown)
      await engine.restart()
      if (end === true) break
    }
    await catchUp(newFollower())
    await expectSameAsFresh()
  })

  it('when a rollback is interrupted and the node returns to the block, the block is taken back and applied again', async () => {
    await open({ chainRules: { sliceAccounts: 1 } })
    const { exchange } = fixture.context
    await fixture.fund()
    await depositInOneBlock()
    await catchUp(follower)
    const { number } = await fixture.context.chain.head()
    engine.stepsLeft = 1
    const reply = await engine.submit<'roll_back'>({ kind: 'roll_back', above: number - 1 })
    expect(reply).to.deep.equal({ none: 'unknown' })
    await engine.restart()
    expect(engine.state.blocks.get(String(number))?.status).to.equal('leaving')
    await exchange.rpc('anvil_mine', '0x1')
    await catchUp(newFollower())
    await expectSameAsFresh()
  })

  it('when the engine writes no row for empty blocks, they are fetched once, and a fork among them is noticed', async () => {
    await open({ chainRules: { emptyBlocksMs: 3_600_000 } })
    const { exchange, alice } = fixture.context
    await fixture.fund()
    await catchUp(follower)
    await exchange.rpc('anvil_mine', '0x3')
    await catchUp(follower)
    const before = applied()
    expect(await follower.pass()).to.equal(true)
    expect(applied(), 'an unchanged head sends nothing').to.equal(before)
    await exchange.rpc('anvil_mine', '0x1')
    await catchUp(follower)
    expect(applied()).to.equal(before + 1)
    await exchange.rpc('anvil_reorg', 3, [])
    await exchange.deposit(alice, '3')
    await catchUp(follower)
    await expectSameAsFresh()
  })

  it('when the chain forks below the blocks that the engine keeps, the follower fails and the engine admits nothing', async () => {
    await open({ chainRules: { depth: 2 } })
    const { exchange } = fixture.context
    await fixture.fund()
    await exchange.rpc('anvil_mine', '0x4')
    await catchUp(follower)
    await exchange.rpc('anvil_reorg', 6, [])
    const error = await follower.pass().catch((thrown: unknown) => thrown)
    expect(error).to.be.instanceOf(ForkTooDeepError)
    expect(engine.state.chain.get('chain')?.forked_at).to.not.equal(null)
  })
})
