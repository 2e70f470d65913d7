/** The follower over an engine, on a real chain: forks, lost replies, repeated blocks, and an engine that ends within a block. */
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { createEngineRecord, ForkTooDeepError } from '../../../indexer/ingest/engine-record.ts'
import { Follower, type FollowOptions } from '../../../indexer/ingest/follow.ts'
import { EngineError } from '../../../keeper/engine/link/engine.ts'
import { TestUSDM__factory } from '../../../typechain-types/factories/TestUSDM__factory.ts'
import { LocalEngine, type LocalEngineOptions } from '../../support/local-engine.ts'
import { e18 } from '../../support/markets.ts'
import { chainState } from '../support/audit.ts'
import type { TestDatabase } from '../support/database.ts'
import { CHAIN_ID, catchUp, followPorts } from '../support/exchange-fixture.ts'
import { useFollowerFixture } from '../support/follower-fixture.ts'

describe('the follower over an engine', () => {
  const fixture = useFollowerFixture()
  let engines: LocalEngine[] = []
  let followed: TestDatabase
  let engine: LocalEngine
  let follower: Follower

  async function open(options: LocalEngineOptions = {}): Promise<void> {
    followed = await fixture.freshDatabase()
    engine = await LocalEngine.over(followed, options)
    engines.push(engine)
    follower = newFollower()
  }

  /** As after a start of its process. */
  function newFollower(options: Partial<FollowOptions> = {}): Follower {
    const { exchange, chain } = fixture.context
    const ports = followPorts(followed, chain)
    const record = createEngineRecord({ ...ports, engine }, CHAIN_ID)
    return new Follower({ ...ports, record }, { ...exchange.followOptions(), ...options })
  }

  beforeEach(() => open())
  afterEach(async () => {
    for (const one of engines) await one.close()
    engines = []
  })

  /** Tables as the chain has left them: the engine keeps no logs. */
  async function effectsOf({ db }: TestDatabase): Promise<unknown> {
    const { logs: _, ...effects } = (await chainState(db)) as { logs: unknown }
    return effects
  }

  /** The tables are those of a follower that has read the present chain once and written them itself. */
  async function expectSameAsTables(options: Partial<FollowOptions> = {}): Promise<void> {
    const { exchange, chain } = fixture.context
    const fresh = await fixture.freshDatabase()
    await catchUp(exchange.follower(fresh, chain, options))
    expect(await effectsOf(followed)).to.deep.equal(await effectsOf(fresh))
    expect(await mismatchesOf(followed)).to.deep.equal(await mismatchesOf(fresh))
  }

  const mismatchesOf = ({ db }: TestDatabase) =>
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

  it('when blocks have deposits and a part that the engine has not matched, the tables equal those of the indexer', async () => {
    const { exchange } = fixture.context
    await fixture.fund()
    await depositInOneBlock()
    await exchange.send(await exchange.part(fixture.pair(500)))
    await catchUp(follower)
    await expectSameAsTables()
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
    await expectSameAsTables(late)
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
    await expectSameAsTables()
  })

  it('when the reply to a block is lost, the next pass continues behind it, and nothing is applied twice', async () => {
    await fixture.fund()
    engine.lost.push('apply_block')
    const error = await follower.pass().catch((thrown: unknown) => thrown)
    expect(error).to.be.instanceOf(EngineError)
    await catchUp(follower)
    await expectSameAsTables()
  })

  it('when a block comes twice, the second one changes nothing', async () => {
    await fixture.fund()
    await catchUp(follower)
    const { exchange, chain } = fixture.context
    const block = await chain.head()
    const record = createEngineRecord({ ...followPorts(followed, chain), engine }, CHAIN_ID)
    const before = await effectsOf(followed)
    const outcome = await record.ingest({ from: block.number, block, facts: [], mismatches: [] })
    expect(outcome).to.deep.equal({ kind: 'recorded', mismatches: [] })
    expect(await effectsOf(followed)).to.deep.equal(before)
    await exchange.deposit(fixture.context.alice, '1')
    await catchUp(follower)
    await expectSameAsTables()
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
    await expectSameAsTables()
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
    await expectSameAsTables()
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
    await expectSameAsTables()
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
