import { expect } from 'chai'
import { id, Wallet } from 'ethers'
import { afterEach, beforeEach, describe, it } from 'mocha'
import type { Fence } from '../../../db/fence.ts'
import type { Auction } from '../../../keeper/auction/auction.ts'
import type { Chain } from '../../../keeper/ports.ts'
import { perpetual } from '../../support/markets.ts'
import { ChainWorld, type Settlement, useChain } from '../support/chain-world.ts'
import { expectConsistent, expectSameReadModel } from '../support/invariants.ts'
import type { Placement, Trader } from '../support/world.ts'

const stranger = new Wallet(id('stranger'))

describe('a settlement that fails', function () {
  this.timeout(60_000)
  const chain = useChain(perpetual)
  let world: ChainWorld
  let auction: Auction
  let settlement: Settlement
  let auctioning: Fence
  let settling: Fence
  let alice: Trader
  let bob: Trader
  let carol: Trader

  beforeEach(async () => {
    world = await ChainWorld.openOn(chain())
    await world.report(1000)
    alice = await world.depositor('alice')
    bob = await world.depositor('bob')
    carol = await world.depositor('carol')
    auction = world.auction()
    settlement = world.settlement()
    auctioning = await world.lease('auction:m1')
    settling = await world.lease('settle:m1')
    await settlement.start()
  })

  afterEach(async () => {
    await expectConsistent(world)
    await expectSameReadModel(world)
    await world.close()
  })

  const buy = (by: Trader, steps: number, more: Partial<Placement> = {}) =>
    world.place({ by, side: 'LONG', steps, limit: 1000, ...more })
  const sell = (by: Trader, steps: number, more: Partial<Placement> = {}) =>
    world.place({ by, side: 'SHORT', steps, limit: 1000, ...more })
  const settleAll = () => settlement.settleAll(settling)
  const batchStates = async () =>
    (await world.db.selectFrom('batches').select('status').orderBy('batch_id').execute()).map(
      ({ status }) => status,
    )

  it('given a named order, it ends that one; the others return with their seq and match again', async () => {
    await buy(alice, 10)
    await sell(bob, 10)
    await auction.run(auctioning)
    const bad = await buy(alice, 20, { signer: stranger })
    const good = await sell(bob, 20)
    await auction.run(auctioning)
    const later = [await buy(carol, 30), await sell(alice, 30)]
    await auction.run(auctioning)
    await settleAll()

    expect(await batchStates()).to.deep.equal(['SETTLED', 'VOIDED', 'VOIDED'])
    expect((await world.actions()).map(({ status }) => status)).to.deep.equal(['MINED', 'REVERTED', 'VOIDED'])
    expect(await world.orderOf(bad)).to.include({
      status: 'CANCELLED',
      statusReason: 'SETTLEMENT_REVERTED',
      reserved: 0n,
    })
    for (const orderId of [good, ...later]) {
      expect(await world.orderOf(orderId)).to.include({
        status: 'OPEN',
        settling: 0,
        held: 0n,
        partialSlot: null,
      })
    }
    const voided = await world.rows('batch_voided')
    expect(voided.map(({ batch_id, reopened }) => [batch_id, reopened.toSorted()])).to.deep.equal([
      [2, [good]],
      [3, later.toSorted()],
    ])

    await auction.run(auctioning)
    await settleAll()
    const settled = (await world.actions()).at(-1)
    expect(settled).to.include({ status: 'MINED', action_id: 2 })
    expect((await batchStates()).at(-1)).to.equal('SETTLED')
    expect(await world.position(carol)).to.equal(30n)
  })

  it('given a named account, it ends what that account had in the failed part', async () => {
    const poor = await world.trader('poor', '100000')
    const bad = [await buy(poor, 10), await buy(poor, 5)]
    const good = await sell(bob, 15)
    await auction.run(auctioning)
    await settleAll()
    for (const orderId of bad) {
      expect(await world.orderOf(orderId)).to.include({
        status: 'CANCELLED',
        statusReason: 'SETTLEMENT_REVERTED',
      })
    }
    expect(await world.orderOf(good)).to.include({ status: 'OPEN', settling: 0 })
    const error = (await world.transactions())[0]?.error
    expect(error).to.match(/^FreeBalanceInsufficient\(/)
  })

  it('given nobody named twice in a row, it makes the market cancel-only', async () => {
    world.signReport = () => `0x${'00'.repeat(65)}`
    await world.report(1000)
    const orders = [await buy(alice, 10), await sell(bob, 10)]
    const modeOf = async () =>
      (await world.db.selectFrom('markets').select('mode').executeTakeFirstOrThrow()).mode
    await auction.run(auctioning)
    await settleAll()
    expect(await modeOf()).to.equal('open')
    await auction.run(auctioning)
    await settleAll()
    expect(await modeOf()).to.equal('cancel_only')
    expect(await auction.run(auctioning)).to.equal(null)
    for (const orderId of orders) expect(await world.cancel(orderId)).to.equal(true)
  })

  it('given a cancel meanwhile, the order ends with the trader’s reason', async () => {
    await buy(alice, 20, { signer: stranger })
    const order = await sell(bob, 50)
    await auction.run(auctioning)
    await world.cancel(order)
    expect(await world.orderOf(order)).to.include({ status: 'CANCEL_PENDING_FINALIZE' })
    await settleAll()
    expect(await world.orderOf(order)).to.include({
      status: 'CANCELLED',
      statusReason: 'USER_CANCELLED',
      held: 0n,
    })
  })

  it('given a young market order without a mined fill, it re-enters', async () => {
    await buy(alice, 20, { signer: stranger })
    const market = await world.place({ by: bob, side: 'SHORT', steps: 30 })
    await auction.run(auctioning)
    expect(await world.orderOf(market)).to.include({ closingReason: 'MARKET_REMAINDER' })
    await settleAll()
    const after = await world.orderOf(market)
    expect(after).to.include({ status: 'OPEN', closingReason: null, settling: 0 })
    expect(after.reserved > 0n).to.equal(true)
  })

  it('given an old market order, it ends', async () => {
    await buy(alice, 20, { signer: stranger })
    const market = await world.place({ by: bob, side: 'SHORT', steps: 30 })
    await auction.run(auctioning)
    world.clock.value += 2_000
    await settleAll()
    expect(await world.orderOf(market)).to.include({
      status: 'CANCELLED',
      statusReason: 'SETTLEMENT_REVERTED',
    })
  })

  it('given a later part that fails, what is mined of the batch stays', async () => {
    const bad: string[] = []
    for (let count = 0; count < 110; count++) {
      const signer = count === 109 ? { signer: stranger } : {}
      bad.push(await buy(alice, 10, signer))
      await sell(bob, 10)
    }
    await auction.run(auctioning)
    await settleAll()
    expect((await world.actions()).map(({ status }) => status)).to.deep.equal(['MINED', 'REVERTED'])
    expect(await world.position(alice)).to.equal(1000n)
    expect(await world.orderOf(bad.at(-1) as string)).to.include({ statusReason: 'SETTLEMENT_REVERTED' })
    expect((await world.orders()).filter(({ status }) => status === 'OPEN')).to.have.length(19)
    await auction.run(auctioning)
    await settleAll()
    expect(await world.position(alice)).to.equal(1090n)
  })

  it('given a part that was never signed in its life, it is voided without a transaction', async () => {
    const order = await buy(alice, 10)
    await sell(bob, 10)
    await auction.run(auctioning)
    world.clock.value += 10_001
    await settleAll()
    expect(await world.orderOf(order)).to.include({ status: 'OPEN', settling: 0 })
    expect(await world.transactions()).to.have.length(0)
    expect((await world.actions()).map(({ status }) => status)).to.deep.equal(['VOIDED'])
  })

  it('given a transaction that no block took in its life, its nonce is used up by nothing', async () => {
    await buy(alice, 10)
    await sell(bob, 10)
    await auction.run(auctioning)
    const swallowed: string[] = []
    const swallowing = (through: Chain): Chain => ({
      ...through,
      send(raw) {
        if (swallowed.length === 0 || swallowed.includes(raw)) {
          swallowed.push(raw)
          return Promise.resolve({ kind: 'sent' })
        }
        return through.send(raw)
      },
    })
    settlement = world.settlement({ chain: swallowing })
    await settlement.start()
    await settlement.look(settling)
    world.clock.value += 10_001
    await settleAll()
    expect((await world.transactions()).map(({ purpose, status }) => [purpose, status])).to.deep.equal([
      ['settle_part', 'REPLACED'],
      ['nothing', 'MINED'],
    ])
    expect((await world.orders()).map(({ status, settling }) => [status, settling])).to.deep.equal([
      ['OPEN', 0],
      ['OPEN', 0],
    ])
    expect(await chain().provider.getTransactionCount(world.lane.relayer)).to.equal(1)
  })
})
