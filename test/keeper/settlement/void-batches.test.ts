import { expect } from 'chai'
import { id, Wallet } from 'ethers'
import { afterEach, beforeEach, describe, it } from 'mocha'
import type { Fence } from '../../../db/fence.ts'
import type { Chain } from '../../../keeper/ports.ts'
import { TestUSDM__factory } from '../../../typechain-types/factories/TestUSDM__factory.ts'
import { passTime } from '../../support/chain-faults.ts'
import { perpetual } from '../../support/markets.ts'
import { type ChainFixture, type SettlementFixture, useChain } from '../support/chain-fixture.ts'
import type { Auction } from '../support/engine-turns.ts'
import { expectConsistent, expectSameReadModel } from '../support/invariants.ts'
import type { Placement, Trader } from '../support/market-fixture.ts'
import { openTrading } from '../support/trading.ts'

const stranger = new Wallet(id('stranger'))
/** `MarginBank` accepts deposits up to this balance of tokens. */
const MOST_TOKENS = 2n ** 94n

describe('a settlement that fails', function () {
  this.timeout(60_000)
  const chain = useChain(perpetual)
  let fixture: ChainFixture
  let auction: Auction
  let settlement: SettlementFixture
  let settling: Fence
  let alice: Trader
  let bob: Trader
  let carol: Trader

  beforeEach(async () => {
    ;({ fixture, auction, settling, alice, bob, carol } = await openTrading(chain()))
    settlement = fixture.settlement()
    await settlement.start(settling)
  })

  afterEach(async () => {
    await expectConsistent(fixture)
    await expectSameReadModel(fixture)
    await fixture.close()
  })

  const buy = (by: Trader, steps: number, more: Partial<Placement> = {}) =>
    fixture.place({ by, side: 'LONG', steps, limit: 1000, ...more })
  const sell = (by: Trader, steps: number, more: Partial<Placement> = {}) =>
    fixture.place({ by, side: 'SHORT', steps, limit: 1000, ...more })
  const settleAll = () => settlement.settleAll(settling)
  const batchStates = async () =>
    (await fixture.db.selectFrom('batches').select('status').orderBy('batch_id').execute()).map(
      ({ status }) => status,
    )

  it('when the revert names an order, that order ends; all other orders return with their seq and match again', async () => {
    await buy(alice, 10)
    await sell(bob, 10)
    await auction.run()
    const bad = await buy(alice, 20, { signer: stranger })
    const good = await sell(bob, 20)
    await auction.run()
    const later = [await buy(carol, 30), await sell(alice, 30)]
    await auction.run()
    await settleAll()

    expect(await batchStates()).to.deep.equal(['SETTLED', 'VOIDED', 'VOIDED'])
    expect((await fixture.actions()).map(({ status }) => status)).to.deep.equal([
      'MINED',
      'REVERTED',
      'VOIDED',
    ])
    expect(await fixture.orderOf(bad)).to.include({
      status: 'CANCELLED',
      statusReason: 'SETTLEMENT_REVERTED',
      reserved: 0n,
    })
    for (const orderId of [good, ...later]) {
      expect(await fixture.orderOf(orderId)).to.include({
        status: 'OPEN',
        settling: 0,
        held: 0n,
        partialSlot: null,
      })
    }
    const voided = await fixture.rows('batch_voided')
    expect(voided.map(({ batch_id, reopened }) => [batch_id, reopened.toSorted()])).to.deep.equal([
      [2, [good]],
      [3, later.toSorted()],
    ])

    await auction.run()
    await settleAll()
    const settled = (await fixture.actions()).at(-1)
    expect(settled).to.include({ status: 'MINED', action_id: 2 })
    expect((await batchStates()).at(-1)).to.equal('SETTLED')
    expect(await fixture.position(carol)).to.equal(30n)
  })

  it('when the revert names an account, its orders in the failed part end', async () => {
    const poor = await fixture.trader('poor', '100000')
    const bad = [await buy(poor, 10), await buy(poor, 5)]
    const good = await sell(bob, 15)
    await auction.run()
    await settleAll()
    for (const orderId of bad) {
      expect(await fixture.orderOf(orderId)).to.include({
        status: 'CANCELLED',
        statusReason: 'SETTLEMENT_REVERTED',
      })
    }
    expect(await fixture.orderOf(good)).to.include({ status: 'OPEN', settling: 0 })
    const error = (await fixture.transactions())[0]?.error
    expect(error).to.match(/^FreeBalanceInsufficient\(/)
  })

  it('when an account owns all that the bank accepts, parts that credit the account settle', async () => {
    await buy(alice, 20)
    await sell(bob, 20)
    await auction.run()
    await settleAll()
    const { shared, provider } = fixture.chainSide
    const held = await TestUSDM__factory.connect(shared.usdm, { provider }).balanceOf(shared.marginBank)
    await fixture.deposit(alice.wallet.address, MOST_TOKENS - held)
    await fixture.follow()
    const closing = await sell(alice, 20)
    await buy(bob, 20)
    await auction.run()
    await settleAll()
    expect(await fixture.orderOf(closing)).to.include({ status: 'FILLED' })
    expect(await batchStates()).to.deep.equal(['SETTLED', 'SETTLED'])
  })

  it('when two reverts in a row name no culprit, the market becomes cancel-only', async () => {
    fixture.signReport = () => `0x${'00'.repeat(65)}`
    await fixture.report(1000)
    const orders = [await buy(alice, 10), await sell(bob, 10)]
    const modeOf = async () =>
      (await fixture.db.selectFrom('markets').select('mode').executeTakeFirstOrThrow()).mode
    await auction.run()
    await settleAll()
    expect(await modeOf()).to.equal('open')
    await auction.run()
    await settleAll()
    expect(await modeOf()).to.equal('cancel_only')
    expect(await auction.run()).to.equal(null)
    for (const orderId of orders) expect(await fixture.cancel(orderId)).to.equal(true)
  })

  it('when the trader cancels before the void, the order ends with the trader’s reason', async () => {
    await buy(alice, 20, { signer: stranger })
    const order = await sell(bob, 50)
    await auction.run()
    await fixture.cancel(order)
    expect(await fixture.orderOf(order)).to.include({ status: 'CANCEL_PENDING_FINALIZE' })
    await settleAll()
    expect(await fixture.orderOf(order)).to.include({
      status: 'CANCELLED',
      statusReason: 'USER_CANCELLED',
      held: 0n,
    })
  })

  it('when a market order without a mined fill is young, it returns to the book', async () => {
    await buy(alice, 20, { signer: stranger })
    const market = await fixture.place({ by: bob, side: 'SHORT', steps: 30 })
    await auction.run()
    expect(await fixture.orderOf(market)).to.include({ closingReason: 'MARKET_REMAINDER' })
    await settleAll()
    const after = await fixture.orderOf(market)
    expect(after).to.include({ status: 'OPEN', closingReason: null, settling: 0 })
    expect(after.reserved > 0n).to.equal(true)
  })

  it('when a market order is old, it ends', async () => {
    await buy(alice, 20, { signer: stranger })
    const market = await fixture.place({ by: bob, side: 'SHORT', steps: 30 })
    await auction.run()
    fixture.clock.value += 2_000
    await settleAll()
    expect(await fixture.orderOf(market)).to.include({
      status: 'CANCELLED',
      statusReason: 'SETTLEMENT_REVERTED',
    })
  })

  it('when a later part fails, the mined parts of the batch stay', async () => {
    const bad: string[] = []
    for (let count = 0; count < 110; count++) {
      const signer = count === 109 ? { signer: stranger } : {}
      bad.push(await buy(alice, 10, signer))
      await sell(bob, 10)
    }
    await fixture.report(1000)
    await auction.run()
    await settleAll()
    expect((await fixture.actions()).map(({ status }) => status)).to.deep.equal(['MINED', 'REVERTED'])
    expect(await fixture.position(alice)).to.equal(1000n)
    expect(await fixture.orderOf(bad.at(-1) as string)).to.include({ statusReason: 'SETTLEMENT_REVERTED' })
    expect((await fixture.orders()).filter(({ status }) => status === 'OPEN')).to.have.length(19)
    await auction.run()
    await settleAll()
    expect(await fixture.position(alice)).to.equal(1090n)
  })

  it('when a part is not signed within its lifetime, it is voided without a transaction', async () => {
    const order = await buy(alice, 10)
    await sell(bob, 10)
    await auction.run()
    await passTime(chain(), 11_000)
    await settleAll()
    expect(await fixture.orderOf(order)).to.include({ status: 'OPEN', settling: 0 })
    expect(await fixture.transactions()).to.have.length(0)
    expect((await fixture.actions()).map(({ status }) => status)).to.deep.equal(['VOIDED'])
  })

  it('when a transaction is not mined within its lifetime, a no-op uses its nonce', async () => {
    await buy(alice, 10)
    await sell(bob, 10)
    await auction.run()
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
    settlement = fixture.settlement({ chain: swallowing })
    await settlement.start(settling)
    await settlement.step(settling)
    await passTime(chain(), 11_000)
    await settleAll()
    expect((await fixture.transactions()).map(({ purpose, status }) => [purpose, status])).to.deep.equal([
      ['settle_part', 'REPLACED'],
      ['nothing', 'MINED'],
    ])
    expect((await fixture.orders()).map(({ status, settling }) => [status, settling])).to.deep.equal([
      ['OPEN', 0],
      ['OPEN', 0],
    ])
    expect(await chain().provider.getTransactionCount(fixture.lane.relayer)).to.equal(1)
  })
})
