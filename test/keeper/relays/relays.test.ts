/** Relays of owners' requests on a real chain: who ends them, in which order they execute, and what failures leave. */
import { expect } from 'chai'
import { id, Wallet } from 'ethers'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { LeaseLost } from '../../../db/fence.ts'
import type { RelayEffect } from '../../../domain/relays/operation.ts'
import type { Chain } from '../../../keeper/ports.ts'
import { replaceFrom } from '../../support/chain-faults.ts'
import { perpetual } from '../../support/markets.ts'
import { waitFor } from '../../support/patience.ts'
import { ChainFixture, faucetKey, foreignTransaction, useChain } from '../support/chain-fixture.ts'
import type { Trader } from '../support/market-fixture.ts'
import { type RelayKeeper, RelayRun } from '../support/relay-run.ts'

const keyOf = (name: string): string => new Wallet(id(name)).address.toLowerCase()
const register = (name: string): RelayEffect => ({ kind: 'register_session_key', sessionKey: keyOf(name) })
const revoke = (name: string): RelayEffect => ({ kind: 'revoke_session_key', sessionKey: keyOf(name) })

/** Seconds until a request expires: longer than any test waits before the time of the chain passes. */
const LIFE = 600

describe('relays of signed requests', function () {
  this.timeout(30_000)
  const deployed = useChain(perpetual)
  let run: RelayRun
  let alice: Trader
  let bob: Trader
  beforeEach(async () => {
    run = await RelayRun.on(await ChainFixture.openOn(deployed()))
    alice = await run.fixture.depositor('alice')
    bob = await run.fixture.depositor('bob')
  })
  afterEach(() => run.close())

  const keys = () =>
    run.fixture.db.selectFrom('session_keys').select(['key', 'revoked_at']).orderBy('key').execute()
  const start = async (options?: Parameters<RelayRun['keeper']>[1]) =>
    run.keeper(await run.acquire(), options)
  const transactions = () => run.fixture.transactions()
  const transactionStatuses = async () => (await transactions()).map(({ status }) => status)
  /** Passes until every transaction that was sent is in a block, without the indexer. */
  async function stepUntilMined(keeper: RelayKeeper): Promise<string[]> {
    for (;;) {
      await keeper.step()
      const statuses = await transactionStatuses()
      if (statuses.every((status) => status === 'MINED' || status === 'REVERTED')) return statuses
    }
  }

  /** Replaces the block in which the operation was executed, and those after it, by empty ones. */
  async function forkFrom(operation: string): Promise<void> {
    const { block } = await run.operation(operation)
    await replaceFrom(run.fixture.chainSide.provider, block as number)
    await run.fixture.follow()
  }

  it("when the receipt is in, a registration is still RELAYING; the chain's event confirms it and the key", async () => {
    const operation = await run.accept(alice, register('one'))
    const keeper = await start()
    await keeper.step()
    expect(await stepUntilMined(keeper)).to.deep.equal(['MINED'])
    expect(await run.statusesOf(operation)).to.deep.equal(['RELAYING'])
    expect(await keys()).to.deep.equal([])
    await run.fixture.follow()
    const [sent] = await transactions()
    expect(await run.operation(operation)).to.deep.include({
      ...{ status: 'CONFIRMED', failure: null, tx_hash: sent?.tx_hash, block: sent?.block },
    })
    expect(await keys()).to.deep.equal([{ key: keyOf('one'), revoked_at: null }])
    expect(await run.journalOf(operation)).to.deep.equal(['QUEUED', 'RELAYING', 'CONFIRMED'])
  })

  it("when owners have several requests, each owner's execute in the order of their nonces, one in flight", async () => {
    const ids = [
      await run.accept(alice, revoke('one'), { nonce: 1 }),
      await run.accept(alice, register('one'), { nonce: 0 }),
      await run.accept(bob, register('one'), { nonce: 0 }),
      await run.accept(bob, { kind: 'invalidate_margin_nonces', marketId: 1, minimum: 5n }, { nonce: 1 }),
    ]
    const keeper = await start()
    await keeper.step()
    expect(await run.statusesOf(...ids)).to.deep.equal(['QUEUED', 'RELAYING', 'RELAYING', 'QUEUED'])
    await run.settle(keeper, ...ids)
    expect(await run.statusesOf(...ids)).to.deep.equal(Array(4).fill('CONFIRMED'))
    const nonces = await run.fixture.db.selectFrom('forwarder_nonces').select('next_nonce').execute()
    expect(nonces.map(({ next_nonce }) => next_nonce)).to.deep.equal([2, 2])
    const floors = await run.fixture.db.selectFrom('margin_nonce_floors').selectAll().execute()
    expect(floors.map(({ account, minimum }) => [account, minimum])).to.deep.equal([
      [bob.wallet.address.toLowerCase(), 5n],
    ])
  })

  it('when a request waits for a nonce that never comes, others go on, and it expires with its deadline', async () => {
    const stuck = await run.accept(alice, register('one'), { nonce: 3, life: LIFE })
    const other = await run.accept(bob, register('two'))
    const keeper = await start()
    await run.settle(keeper, other)
    expect(await run.statusesOf(stuck, other)).to.deep.equal(['QUEUED', 'CONFIRMED'])
    await run.fixture.chainSide.provider.send('evm_increaseTime', [2 * LIFE])
    await run.fixture.chainSide.provider.send('evm_mine', [])
    await run.fixture.follow()
    await keeper.step()
    expect(await run.operation(stuck)).to.deep.include({
      status: 'FAILED',
      failure: 'EXPIRED',
      tx_hash: null,
    })
  })

  it('when no process runs the lane any more, requests that wait and those that were sent expire with their deadlines', async () => {
    const lost = async (): Promise<{ kind: 'sent' }> => ({ kind: 'sent' })
    const sent = await run.accept(alice, register('one'), { life: LIFE })
    const keeper = await start({ wrap: (chain) => ({ ...chain, send: lost }) })
    await keeper.step()
    const queued = await run.accept(bob, register('two'), { life: LIFE })
    await keeper.expire()
    expect(await run.statusesOf(sent, queued)).to.deep.equal(['RELAYING', 'QUEUED'])
    await run.fixture.chainSide.provider.send('evm_increaseTime', [2 * LIFE])
    await run.fixture.chainSide.provider.send('evm_mine', [])
    await run.fixture.follow()
    await keeper.expire()
    for (const id of [sent, queued])
      expect(await run.operation(id)).to.deep.include({ status: 'FAILED', failure: 'EXPIRED' })
  })

  it('when more requests wait than a pass may sign, the oldest are signed, each owner once', async () => {
    const traders: Trader[] = []
    for (let n = 0; n < 22; n++) {
      const wallet = new Wallet(id(`owner ${n}`))
      traders.push({ wallet, account: alice.account } as Trader)
    }
    const ids: string[] = []
    for (const trader of traders) ids.push(await run.accept(trader, register('shared')))
    const keeper = await start()
    await keeper.step()
    const statuses = await run.statusesOf(...ids)
    expect(statuses.slice(0, 20)).to.deep.equal(Array(20).fill('RELAYING'))
    expect(statuses.slice(20)).to.deep.equal(Array(2).fill('QUEUED'))
  })

  it('when the call would revert, it fails with the error of the contract and without a transaction', async () => {
    const operation = await run.accept(alice, revoke('one'))
    await (await start()).step()
    expect(await run.operation(operation)).to.deep.include({ status: 'FAILED', failure: 'REVERTED' })
    expect((await run.operation(operation)).reason).to.match(/^KeyNotRegistered\(/)
    expect(await transactions()).to.deep.equal([])
  })

  it('when the node rejects the simulation of one request, all other requests go on, and that request is relayed later', async () => {
    const [stuck, other] = [await run.accept(alice, register('one')), await run.accept(bob, register('one'))]
    let isRejecting = true
    const rejecting = (chain: Chain): Chain => ({
      ...chain,
      async dryRun(call, from) {
        if (isRejecting && call.data.includes(alice.wallet.address.slice(2).toLowerCase()))
          throw new Error('limit exceeded')
        return chain.dryRun(call, from)
      },
    })
    const keeper = await start({ wrap: rejecting })
    await run.settle(keeper, other)
    expect(await run.statusesOf(stuck, other)).to.deep.equal(['QUEUED', 'CONFIRMED'])
    isRejecting = false
    await run.settle(keeper, stuck)
    expect(await run.statusesOf(stuck)).to.deep.equal(['CONFIRMED'])
  })

  it('when the transaction reverts, it fails once the indexer has recorded the block', async () => {
    const operation = await run.accept(alice, revoke('one'))
    const hopeful = (chain: Chain): Chain => ({
      ...chain,
      dryRun: async (call, from) =>
        call.to === run.fixture.chainSide.shared.forwarder ? null : chain.dryRun(call, from),
    })
    const keeper = await start({ wrap: hopeful })
    await keeper.step()
    expect(await stepUntilMined(keeper)).to.deep.equal(['REVERTED'])
    expect(await run.statusesOf(operation)).to.deep.equal(['RELAYING'])
    await run.settle(keeper, operation)
    expect(await run.operation(operation)).to.deep.include({ status: 'FAILED', failure: 'REVERTED' })
    expect((await run.operation(operation)).reason).to.match(/^KeyNotRegistered\(/)
  })

  it('when another party executes the request first, it is confirmed with the other transaction', async () => {
    const operation = await run.accept(alice, register('one'))
    const deaf = (chain: Chain): Chain => ({
      ...chain,
      send: async () => ({ kind: 'unknown', error: 'down' }),
    })
    const fence = await run.acquire()
    await (await run.keeper(fence, { wrap: deaf })).step()
    const other = await run.executeByOther(alice, register('one'))
    const keeper = await run.keeper(fence)
    await keeper.step()
    await run.settle(keeper, operation)
    expect(await run.operation(operation)).to.deep.include({ status: 'CONFIRMED', tx_hash: other })
    expect(await stepUntilMined(keeper)).to.deep.equal(['REVERTED'])
    expect(await run.statusesOf(operation)).to.deep.equal(['CONFIRMED'])
  })

  it('when another party executes it before it is signed, it is confirmed, and a reorganization queues it again', async () => {
    const operation = await run.accept(alice, register('one'))
    await run.executeByOther(alice, register('one'))
    await run.fixture.follow()
    expect(await run.statusesOf(operation)).to.deep.equal(['CONFIRMED'])
    await forkFrom(operation)
    expect(await run.operation(operation)).to.deep.include({ status: 'QUEUED', block: null })
    await run.settle(await start(), operation)
    expect(await run.statusesOf(operation)).to.deep.equal(['CONFIRMED'])
  })

  it('when another request uses the nonce, it fails as superseded', async () => {
    const operation = await run.accept(alice, register('one'))
    await run.executeByOther(alice, register('two'))
    await run.fixture.follow()
    expect(await run.operation(operation)).to.deep.include({ status: 'FAILED', failure: 'SUPERSEDED' })
    await (await start()).step()
    expect(await transactions()).to.deep.equal([])
  })

  it('when a reorganization removes a confirmed registration, the key is gone and the same bytes are sent again', async () => {
    const operation = await run.accept(alice, register('one'))
    const keeper = await start()
    await run.settle(keeper, operation)
    await forkFrom(operation)
    expect(await run.operation(operation)).to.deep.include({ status: 'RELAYING', block: null })
    expect(await keys()).to.deep.equal([])
    await run.settle(keeper, operation)
    expect(await run.statusesOf(operation)).to.deep.equal(['CONFIRMED'])
    expect((await transactions()).map(({ nonce }) => nonce)).to.have.length(1)
    expect(await keys()).to.deep.equal([{ key: keyOf('one'), revoked_at: null }])
    expect(await run.journalOf(operation)).to.deep.equal([
      ...['QUEUED', 'RELAYING', 'CONFIRMED', 'RELAYING', 'CONFIRMED'],
    ])
  })

  it('when a keeper stops after storing or after sending, the next one ends the operation with the same bytes', async () => {
    const fence = await run.acquire()
    const operations = [await run.accept(alice, register('one')), await run.accept(bob, register('one'))]
    const deaf = (chain: Chain): Chain => ({ ...chain, send: () => new Promise(() => {}) })
    const stopped = await run.keeper(fence, { wrap: deaf })
    // It never ends: it stores both, and waits for the answer of the node.
    const failed = stopped.step().then(() => {
      throw new Error('the pass ended without an answer of the node')
    })
    const isStored = (statuses: string[]): boolean => statuses.every((status) => status === 'RELAYING')
    await Promise.race([waitFor(() => run.statusesOf(...operations), isStored), failed])
    const stored = (await transactions()).map(({ raw }) => raw)
    await run.fixture.chainSide.provider.broadcastTransaction(stored[0] as string)
    const keeper = await run.keeper(fence)
    await run.settle(keeper, ...operations)
    expect(await run.statusesOf(...operations)).to.deep.equal(['CONFIRMED', 'CONFIRMED'])
    expect((await transactions()).map(({ raw }) => raw)).to.deep.equal(stored)
  })

  it('when the relayer nonce of a signed request is used by a foreign transaction, it is queued and sent again', async () => {
    const operation = await run.accept(alice, register('one'))
    const fence = await run.acquire()
    const deaf = (chain: Chain): Chain => ({
      ...chain,
      send: async () => ({ kind: 'unknown', error: 'down' }),
    })
    await (await run.keeper(fence, { wrap: deaf })).step()
    await foreignTransaction(run.fixture.chainSide, 0, faucetKey)
    const keeper = await run.keeper(fence)
    await run.settle(keeper, operation)
    expect(await run.operation(operation)).to.deep.include({ status: 'CONFIRMED', relayer_nonce: 1 })
  })

  it('when another keeper owns the lease, a stale keeper stores and ends nothing', async () => {
    const operation = await run.accept(alice, register('one'))
    const stale = await run.keeper(await run.acquire('first'))
    await run.fixture.db.updateTable('leases').set({ expires_at: 0 }).execute()
    const fence = await run.acquire('second')
    expect(await stale.step().catch((error: unknown) => error)).to.be.instanceOf(LeaseLost)
    expect(await run.statusesOf(operation)).to.deep.equal(['QUEUED'])
    await run.settle(await run.keeper(fence), operation)
    expect(await run.statusesOf(operation)).to.deep.equal(['CONFIRMED'])
  })
})
