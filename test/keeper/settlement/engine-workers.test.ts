/** The keeper's workers over an engine, on a real chain: what lost replies and crashes between storing, accepting and sending leave. */
import { expect } from 'chai'
import { id, Wallet } from 'ethers'
import { afterEach, describe, it } from 'mocha'
import { loadKeysOf } from '../../../db/relayers.ts'
import { createStores } from '../../../keeper/compose-stores.ts'
import { EngineError } from '../../../keeper/engine/link/engine.ts'
import { releaseFinal } from '../../../keeper/relayer/release.ts'
import { LocalEngine } from '../../support/local-engine.ts'
import { perpetual } from '../../support/markets.ts'
import { AdjustmentRun, changeMargin } from '../support/adjustment-run.ts'
import { adjustKey, ChainFixture, foreignTransaction, laneKey, useChain } from '../support/chain-fixture.ts'
import { RelayRun } from '../support/relay-run.ts'
import { openTrading, type Trading } from '../support/trading.ts'

const PRICE = 1000
type Changes = NonNullable<Parameters<ChainFixture['settlement']>[0]>

describe('workers over an engine', function () {
  this.timeout(60_000)
  const chain = useChain(perpetual)
  const open: { close(): Promise<void> }[] = []
  afterEach(async () => {
    for (const resource of open.splice(0).reverse()) await resource.close()
  })

  /** From here on only the engine writes. */
  async function engineOver(fixture: ChainFixture): Promise<LocalEngine> {
    await fixture.engine.decide(() => null)
    const engine = await LocalEngine.over(fixture, { state: fixture.engine.state })
    open.push(engine)
    await fixture.followThrough(engine)
    return engine
  }

  /** Batches of one part in the queue, and settlements that write through the engine. */
  async function queuedBatch(batches = 1) {
    const trading: Trading = await openTrading(chain())
    const { fixture, alice, bob, auction, settling } = trading
    open.push(fixture)
    for (let batch = 1; batch <= batches; batch++) {
      await fixture.place({ by: alice, side: 'LONG', steps: 50, limit: PRICE })
      await fixture.place({ by: bob, side: 'SHORT', steps: 50, limit: PRICE })
      await auction.run()
    }
    const engine = await engineOver(fixture)
    const stores = createStores({ db: fixture.db, engine })
    return {
      ...trading,
      engine,
      stores,
      settling,
      start: (changes: Changes = {}) => fixture.settlement({ ...changes, stores }),
    }
  }

  const transactionsOf = async (fixture: ChainFixture) =>
    (await fixture.transactions()).map(({ nonce, status }) => [nonce, status])
  const sentBy = (relayer: string) => chain().provider.getTransactionCount(relayer)

  it('when a batch is queued, its part is numbered, signed, sent and mined', async () => {
    const { fixture, settling, start, alice } = await queuedBatch()
    const settlement = start()
    await settlement.start(settling)
    await settlement.settleAll(settling)
    expect((await fixture.actions()).map(({ status }) => status)).to.deep.equal(['MINED'])
    expect(await transactionsOf(fixture)).to.deep.equal([[0, 'MINED']])
    expect(await fixture.position(alice)).to.equal(50n)
  })

  it('when the reply to a signature is lost, nothing is sent until the engine states that it has accepted it', async () => {
    const { fixture, engine, settling, start } = await queuedBatch()
    const settlement = start()
    await settlement.start(settling)
    engine.lost.push('signed')
    const error = await settlement.step(settling).catch((thrown: unknown) => thrown)
    expect(error).to.be.instanceOf(EngineError)
    expect(await transactionsOf(fixture)).to.deep.equal([[0, 'STORED']])
    expect(await sentBy(fixture.lane.relayer)).to.equal(0)
    const [stored] = await fixture.transactions()
    const next = start()
    await next.start(settling)
    await next.settleAll(settling)
    const [mined] = await fixture.transactions()
    expect(mined).to.include({ tx_hash: stored?.tx_hash, status: 'MINED' })
    expect((await fixture.actions()).map(({ status }) => status)).to.deep.equal(['MINED'])
  })

  it('when a signature never reaches the engine, the action is signed again with the same numbers', async () => {
    const { fixture, engine, settling, start } = await queuedBatch()
    const settlement = start()
    await settlement.start(settling)
    engine.dropped.push('signed')
    const error = await settlement.step(settling).catch((thrown: unknown) => thrown)
    expect(error).to.be.instanceOf(EngineError)
    expect(await sentBy(fixture.lane.relayer)).to.equal(0)
    const next = start()
    await next.start(settling)
    await next.settleAll(settling)
    expect((await fixture.actions()).map(({ status, nonce }) => [status, nonce])).to.deep.equal([
      ['MINED', 0],
    ])
    expect(await sentBy(fixture.lane.relayer)).to.equal(1)
  })

  const keyOf = (key: string): string => new Wallet(key).address.toLowerCase()
  const numbersOf = async (fixture: ChainFixture) =>
    (await fixture.actions()).map(({ action_id, relayer, nonce, status }) => [
      action_id,
      relayer,
      nonce,
      status,
    ])

  it('when the reply to a signature is lost and the lane continues with another key alone, the stored bytes are mined before it signs', async () => {
    const { fixture, engine, stores, settling, start, alice } = await queuedBatch(2)
    const settlement = start()
    await settlement.start(settling)
    engine.lost.push('signed')
    await settlement.step(settling).catch((thrown: unknown) => thrown)
    expect(await transactionsOf(fixture)).to.deep.equal([[0, 'STORED']])
    const next = fixture.settlement({ stores, key: adjustKey })
    await next.start(settling)
    await next.settleAll(settling)
    expect(await numbersOf(fixture)).to.deep.equal([
      [1, keyOf(laneKey), 0, 'MINED'],
      [2, keyOf(adjustKey), 0, 'MINED'],
    ])
    expect(await fixture.position(alice)).to.equal(100n)
  })

  it('when an action was numbered and not signed before the key changed, the new key signs it with the same id, and the kept key fills its nonce', async () => {
    const { fixture, stores, settling } = await queuedBatch(2)
    let reserved = 0
    const killed = fixture.settlement({
      stores,
      killPoint: (point) => {
        if (point === 'after-reserving' && ++reserved === 2) throw new Error('killed')
      },
    })
    await killed.start(settling)
    await killed.step(settling).catch(() => {})
    await killed.delivery.settled()
    expect((await numbersOf(fixture))[1]).to.deep.equal([2, keyOf(laneKey), 1, 'QUEUED'])
    const next = fixture.settlement({ stores, key: adjustKey, formerKeys: [laneKey] })
    await next.start(settling)
    await next.settleAll(settling)
    expect(await numbersOf(fixture)).to.deep.equal([
      [1, keyOf(laneKey), 0, 'MINED'],
      [2, keyOf(adjustKey), 0, 'MINED'],
    ])
    await next.delivery.recover(settling)
    await next.delivery.settled()
    const sent = (await fixture.transactions()).filter(({ relayer }) => relayer === keyOf(laneKey))
    expect(sent.map(({ nonce, purpose, status }) => [nonce, purpose, status])).to.deep.equal([
      [0, 'settle_part', 'MINED'],
      [1, 'nothing', 'MINED'],
    ])
  })

  it('when a foreign transaction uses nonces of a key that returns, the lane skips them, and operators see it as present', async () => {
    const { fixture, stores, settling } = await queuedBatch()
    await fixture.settlement({ stores, key: adjustKey, formerKeys: [laneKey] }).start(settling)
    await fixture.settlement({ stores }).start(settling)
    await foreignTransaction(chain(), 0)
    const settlement = fixture.settlement({ stores })
    await settlement.start(settling)
    await settlement.settleAll(settling)
    expect(await numbersOf(fixture)).to.deep.equal([[1, keyOf(laneKey), 1, 'MINED']])
    const [present] = await fixture.db
      .selectFrom('relayers')
      .select('address')
      .where('lane', '=', fixture.lane.name)
      .orderBy('registered_at', 'desc')
      .execute()
    expect(present?.address).to.equal(keyOf(laneKey))
  })

  it('when the transactions of a former and of the present key are final, the engine forgets both', async () => {
    const { fixture, engine, stores, settling, start } = await queuedBatch(2)
    const killed = start({
      killPoint: (point) => {
        if (point === 'after-signing') throw new Error('killed')
      },
    })
    await killed.start(settling)
    await killed.step(settling).catch(() => {})
    const next = start({ key: adjustKey })
    await next.start(settling)
    await next.settleAll(settling)
    const remembered = () => [...engine.state.transactions.rows()].map(({ relayer }) => relayer)
    expect(remembered()).to.have.members([keyOf(laneKey), keyOf(adjustKey)])
    await chain().provider.send('anvil_mine', ['0x40'])
    const { name, chainId } = fixture.lane
    const relayers = () => loadKeysOf(fixture.db, chainId, [name])
    await releaseFinal({ engine, chain: next.chain, relayers })
    expect(remembered()).to.deep.equal([])
    expect(await stores.relayers.open(next.lane)).to.deep.equal([])
  })

  it('when a key of a lane is given to another lane, the engine refuses it', async () => {
    const { fixture, stores, settling, start } = await queuedBatch()
    await start().start(settling)
    const error = await stores.relayers
      .register({ ...fixture.lane, name: 'm2' }, 0)
      .catch((thrown: Error) => thrown.message)
    expect(error).to.equal(`relayer ${keyOf(laneKey)} belongs to lane m1: give lane m2 a key of its own`)
  })

  it('when a foreign transaction uses the nonce of a part, the engine voids the batch and returns its orders', async () => {
    const { fixture, engine, settling, start } = await queuedBatch()
    const down = fixture.settlement({
      stores: createStores({ db: fixture.db, engine }),
      chain: (node) => ({ ...node, send: async () => ({ kind: 'unknown', error: 'down' }) }),
    })
    await down.start(settling)
    await down.step(settling)
    await foreignTransaction(chain(), 0)
    const settlement = start()
    await settlement.start(settling)
    await settlement.settleAll(settling)
    expect((await fixture.actions()).map(({ status }) => status)).to.deep.equal(['REVERTED'])
    expect(engine.log.filter(({ kind }) => kind === 'void').map(({ answer }) => answer)).to.deep.equal([
      { kind: 'voided', batchIds: [1], isRestricted: false },
    ])
    const orders = await fixture.db.selectFrom('orders').select(['status', 'settling']).execute()
    expect(orders).to.deep.equal(Array(2).fill({ status: 'OPEN', settling: 0 }))
  })

  it('when an adjustment is signed and the reply is lost, the next keeper sends the stored bytes once', async () => {
    const run = await AdjustmentRun.on(await openTrading(chain()))
    open.push(run)
    const margin = await run.marginOf(run.alice)
    const attempt = await run.accept(run.alice, changeMargin('10'))
    const engine = await engineOver(run.fixture)
    engine.lost.push('adjustments_signed')
    await (await run.keeper(await run.acquire('first'), { engine })).step()
    expect(await run.statusOf(attempt)).to.equal('SIGNED')
    expect(await sentBy(run.lane.relayer)).to.equal(0)
    const [stored] = await run.sent()
    await run.settle(await run.keeper(await run.acquire('second'), { engine }))
    expect(await run.statusOf(attempt)).to.equal('COMMITTED')
    expect((await run.sent()).map(({ tx_hash }) => tx_hash)).to.deep.equal([stored?.tx_hash])
    expect((await run.marginOf(run.alice)) - margin).to.equal(10n ** 19n)
  })

  it('when a signature of an adjustment never reaches the engine, its nonce is filled, and it is signed with another one', async () => {
    const run = await AdjustmentRun.on(await openTrading(chain()))
    open.push(run)
    const attempt = await run.accept(run.alice, changeMargin('10'))
    const engine = await engineOver(run.fixture)
    engine.dropped.push('adjustments_signed')
    await (await run.keeper(await run.acquire('first'), { engine })).step()
    expect(await run.statusOf(attempt)).to.equal('PREPARED')
    await run.settle(await run.keeper(await run.acquire('second'), { engine }))
    expect(await run.attempt(attempt)).to.include({ status: 'COMMITTED', relayer_nonce: 1 })
    const purposes = (await run.sent()).map(({ nonce, purpose, status }) => [nonce, purpose, status])
    expect(purposes).to.deep.include.members([
      [0, 'adjustment', 'STORED'],
      [0, 'nothing', 'MINED'],
      [1, 'adjustment', 'MINED'],
    ])
  })

  it('when a relayed request is signed and the reply is lost, it is confirmed with the stored bytes', async () => {
    const run = await RelayRun.on(await ChainFixture.openOn(chain()))
    open.push(run)
    const alice = await run.fixture.depositor('alice')
    const sessionKey = new Wallet(id('key')).address.toLowerCase()
    const operation = await run.accept(alice, { kind: 'register_session_key', sessionKey })
    const engine = await engineOver(run.fixture)
    engine.lost.push('relay_signed')
    const fence = await run.acquire()
    await (await run.keeper(fence, { engine })).step()
    expect(await run.statusesOf(operation)).to.deep.equal(['RELAYING'])
    const [stored] = await run.fixture.transactions()
    expect(stored?.status).to.equal('STORED')
    await run.settle(await run.keeper(fence, { engine }), operation)
    expect(await run.statusesOf(operation)).to.deep.equal(['CONFIRMED'])
    expect((await run.fixture.transactions()).map(({ tx_hash }) => tx_hash)).to.deep.equal([stored?.tx_hash])
  })

  it('when a transaction that executes nothing of the engine never reaches it, the lane offers the stored bytes again', async () => {
    const run = await RelayRun.on(await ChainFixture.openOn(chain()))
    open.push(run)
    const engine = await engineOver(run.fixture)
    const { relayers } = createStores({ db: run.fixture.db, engine })
    const fence = await run.acquire()
    await run.keeper(fence, { engine })
    const nonce = await relayers.reserve(run.lane, fence, 1)
    const transaction = {
      hash: '0xab',
      raw: '0x',
      nonce,
      purpose: 'heartbeat',
      signedAt: run.fixture.clock.now(),
    }
    engine.dropped.push('signed')
    const error = await relayers
      .addSigned(fence, run.lane, transaction as never)
      .catch((thrown: unknown) => thrown)
    expect(error).to.be.instanceOf(EngineError)
    expect(await relayers.open(run.lane)).to.deep.equal([])
    const assigned = await relayers.assigned(run.lane, nonce, nonce + 1)
    expect(assigned.map(({ hash, status }) => [hash, status])).to.deep.equal([['0xab', 'SIGNED']])
    expect(await relayers.open(run.lane)).to.have.length(1)
  })
})
