/** Inheritance, deleveraging and wind-down change positions outside batches: applied to the write side and rolled back. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { OrderPlaced } from '../../../domain/journal/journal-row.ts'
import type { Price } from '../../../domain/units.ts'
import { Backstop__factory } from '../../../typechain-types/factories/Backstop__factory.ts'
import { e18 } from '../../support/markets.ts'
import { expectBooks, expectConservation, expectPositions } from '../support/audit.ts'
import { addressOf, catchUp, projectAll } from '../support/exchange-fixture.ts'
import { useFollowerFixture } from '../support/follower-fixture.ts'
import { matchPart, writeRows } from '../support/matched-part.ts'
import { acceptOrder, orderOf } from '../support/resting-order.ts'

const DROPPED = e18('80')

describe('changes of positions outside batches', () => {
  const fixture = useFollowerFixture()

  /** The market's backstop may take over a notional of 1,000 and has that balance. */
  async function withBackstop(): Promise<{ address: string }> {
    const { exchange } = fixture.context
    const admin = await exchange.provider.getSigner(0)
    const { backstop } = exchange.shared
    await (await Backstop__factory.connect(backstop, admin).setBacked(exchange.spec.trader, true)).wait()
    await (await exchange.trader.connect(admin).setBackstop(backstop, e18('1000'))).wait()
    await exchange.deposit({ address: backstop } as never, '1000')
    return { address: backstop }
  }

  /** 30 s later the price is 80: a long from 100 at 5x has no equity left. */
  async function afterPriceDrop() {
    const { exchange } = fixture.context
    const second = (await exchange.latestSecond()) + 30
    await exchange.rpc('evm_setNextBlockTimestamp', second)
    const observedAt = second * 1000
    const proof = await exchange.report(observedAt, DROPPED as Price)
    const { actionId } = await exchange.trader.clock()
    const trader = exchange.trader.connect(await exchange.provider.getSigner(1))
    return {
      trader,
      actionId: actionId + 1n,
      asOf: observedAt,
      report: { price: DROPPED, observedAt, proof },
    }
  }

  async function audit(backstop: { address: string }): Promise<void> {
    const { exchange, test, users } = fixture.context
    await projectAll(test)
    const accounts = [...users, backstop as never]
    await expectConservation(exchange, test.db, accounts)
    await expectPositions(exchange, test.db, accounts)
    await expectBooks(test.db)
  }

  const acceptReduceOnly = (changes: Partial<OrderPlaced> = {}) =>
    acceptOrder(fixture.context.test.engine, 1, addressOf(fixture.context.alice), {
      ...{ side: 'SHORT', reduce_only: true, price: 1_100, ...changes },
    })
  const stateOf = async (orderId: string) => {
    const { status, status_reason, closing_reason } = await orderOf(fixture.context.test.db, orderId)
    return [status, status_reason ?? closing_reason ?? ''].join(' ').trim()
  }
  const eventsOf = async (orderId: string) => {
    await projectAll(fixture.context.test)
    const events = await fixture.context.test.db
      .selectFrom('read.order_events')
      .select('kind')
      .where('order_id', '=', orderId)
      .orderBy('seq')
      .execute()
    return events.map(({ kind }) => kind).join()
  }

  /** The batch's only part will not be mined. */
  const voidBatch = async (batchId: number) => {
    const { db, engine } = fixture.context.test
    const rows = await db.selectFrom('journal').select('row').execute()
    const fills = rows.flatMap(({ row }) =>
      row.kind === 'batch_cleared' && row.batch_id === batchId ? row.fills : [],
    )
    const voided = { batch_id: batchId, from_part: 1, why: 'a test', at: 1, fills, reopened: [] }
    await writeRows(engine, 1, [{ kind: 'batch_voided', ...voided }])
  }

  const causes = async () => {
    const rows = await fixture.context.test.db.selectFrom('journal').select('row').orderBy('seq').execute()
    return rows.flatMap(({ row }) => (row.kind === 'positions_moved' ? [`${row.cause} ${row.rollback}`] : []))
  }

  const NOTHING = {
    ...{ market_id: 1, inheritances: 0, inherited_steps: 0, failed_inheritances: 0, deleveragings: 0 },
    ...{ deleveraged_steps: 0, deleveraged_value: 0n, payouts: 0n, deficits: 0, deficit: 0n, covered: 0n },
  }
  const expectRisk = async (expected: Partial<typeof NOTHING>): Promise<void> => {
    await projectAll(fixture.context.test)
    const rows = await fixture.context.test.db.selectFrom('read.market_risk').selectAll().execute()
    expect(rows).to.deep.equal([{ ...NOTHING, ...expected }])
  }

  it('when the backstop inherits a position, both positions and its balance change, and a reorg rolls them back', async () => {
    const { exchange, follower, alice } = fixture.context
    const backstop = await withBackstop()
    await fixture.fundAndFollow()
    await fixture.trade(fixture.pair(500))
    const { trader, actionId, asOf, report } = await afterPriceDrop()
    await (await trader.inheritPosition(actionId, asOf, alice.address, report)).wait()
    await catchUp(follower)
    await audit(backstop)
    expect((await exchange.trader.position(backstop.address)).size).to.equal(500n)
    expect(await fixture.mismatches()).to.deep.equal([])
    await expectRisk({ inheritances: 1, inherited_steps: 500 })

    await exchange.rpc('anvil_reorg', 1, [])
    await catchUp(follower)
    await audit(backstop)
    await expectRisk({})
    expect((await exchange.trader.position(backstop.address)).size).to.equal(0n)
    expect(await causes()).to.deep.equal(['inherited false', 'inherited true'])
  })

  it('when the backstop inherits a position, the reduce-only orders of its account end, and a reorg returns them', async () => {
    const { exchange, follower, alice } = fixture.context
    const backstop = await withBackstop()
    await fixture.fundAndFollow()
    await fixture.trade(fixture.pair(500))
    await catchUp(follower)
    const limit = await acceptReduceOnly()
    const stop = await acceptReduceOnly({ type: 'STOP_LOSS_MARKET', price: 0, trigger: 900 })
    const other = await acceptReduceOnly({ side: 'LONG', price: 900 })
    const states = async () => [await stateOf(limit), await stateOf(stop), await stateOf(other)]
    const { trader, actionId, asOf, report } = await afterPriceDrop()
    await (await trader.inheritPosition(actionId, asOf, alice.address, report)).wait()
    await catchUp(follower)
    const closed = 'CANCELLED POSITION_CLOSED'
    expect(await states()).to.deep.equal([closed, closed, 'OPEN'])
    expect(await eventsOf(limit)).to.equal('CREATED,CANCELLED')
    await audit(backstop)
    await exchange.rpc('anvil_reorg', 1, [])
    await catchUp(follower)
    expect(await states()).to.deep.equal(['OPEN', 'PENDING_TRIGGER', 'OPEN'])
    expect(await eventsOf(limit)).to.equal('CREATED')
    await audit(backstop)
  })

  it('when an inheritance closes the position of an order that had left the book with an unsettled fill, the order ends', async () => {
    const { exchange, test, follower, alice, bob } = fixture.context
    await withBackstop()
    await fixture.fundAndFollow()
    await fixture.trade(fixture.pair(500))
    await catchUp(follower)
    const limit = await acceptReduceOnly()
    // A sell of 600 is matched: the matched position is short, and the order leaves the book.
    const sell = { by: alice, side: 'SHORT', fill: 600, salt: fixture.salt() } as const
    const buy = { by: bob, side: 'LONG', fill: 600, salt: fixture.salt() } as const
    await matchPart(test, await exchange.part([sell, buy]), '0x1')
    expect(await stateOf(limit)).to.equal('OPEN POSITION_CLOSED')
    const { trader, actionId, asOf, report } = await afterPriceDrop()
    await (await trader.inheritPosition(actionId, asOf, alice.address, report)).wait()
    await catchUp(follower)
    expect(await stateOf(limit)).to.equal('CANCELLED POSITION_CLOSED')
    await exchange.rpc('anvil_reorg', 1, [])
    await catchUp(follower)
    expect(await stateOf(limit)).to.equal('OPEN POSITION_CLOSED')
  })

  it('when the unsettled fill is voided between the inheritance and its rollback, the order is back in the book', async () => {
    const { exchange, test, follower, alice, bob } = fixture.context
    await withBackstop()
    await fixture.fundAndFollow()
    await fixture.trade(fixture.pair(500))
    await catchUp(follower)
    const limit = await acceptReduceOnly()
    const sell = { by: alice, side: 'SHORT', fill: 600, salt: fixture.salt() } as const
    const buy = { by: bob, side: 'LONG', fill: 600, salt: fixture.salt() } as const
    await matchPart(test, await exchange.part([sell, buy]), '0x1')
    const { trader, actionId, asOf, report } = await afterPriceDrop()
    await (await trader.inheritPosition(actionId, asOf, alice.address, report)).wait()
    await catchUp(follower)
    await voidBatch(2)
    await exchange.rpc('anvil_reorg', 1, [])
    await catchUp(follower)
    expect(await stateOf(limit)).to.equal('OPEN')
  })

  it('when a deleveraging closes a position only together with an unsettled fill, its orders leave the book with that fill', async () => {
    const { exchange, test, follower, alice, bob } = fixture.context
    await withBackstop()
    await fixture.fundAndFollow()
    await fixture.trade(fixture.pair(500))
    await catchUp(follower)
    const limit = await acceptOrder(test.engine, 1, addressOf(bob), { reduce_only: true, price: 900 })
    const sell = { by: alice, side: 'SHORT', fill: 100, salt: fixture.salt() } as const
    const buy = { by: bob, side: 'LONG', fill: 100, salt: fixture.salt() } as const
    await matchPart(test, await exchange.part([sell, buy]), '0x1')
    const { trader, actionId, asOf, report } = await afterPriceDrop()
    await (await trader.deleverage(actionId, asOf, alice.address, [bob.address], [400], report)).wait()
    await catchUp(follower)
    expect(await stateOf(limit)).to.equal('OPEN POSITION_CLOSED')
    expect(await eventsOf(limit)).to.equal('CREATED')
    const { closed_by } = await test.db
      .selectFrom('orders')
      .select('closed_by')
      .where('order_id', '=', limit)
      .executeTakeFirstOrThrow()
    expect(closed_by).to.match(/^1-2-1-/)
    await exchange.rpc('anvil_reorg', 1, [])
    await catchUp(follower)
    expect(await stateOf(limit)).to.equal('OPEN')
  })

  it('when a counterparty placed a reduce-only order after the deleveraging was decided, the order stays for its next position', async () => {
    const { exchange, test, follower, alice, bob } = fixture.context
    await withBackstop()
    await fixture.fundAndFollow()
    await fixture.trade(fixture.pair(500))
    await catchUp(follower)
    const { trader, actionId, asOf, report } = await afterPriceDrop()
    const place = (accepted_at: number) =>
      acceptOrder(test.engine, 1, addressOf(bob), { reduce_only: true, price: 900, accepted_at })
    const [before, after] = [await place(asOf), await place(asOf + 1)]
    await (await trader.deleverage(actionId, asOf, alice.address, [bob.address], [500], report)).wait()
    await catchUp(follower)
    expect([await stateOf(before), await stateOf(after)]).to.deep.equal(['CANCELLED POSITION_CLOSED', 'OPEN'])
    await exchange.rpc('anvil_reorg', 1, [])
    await catchUp(follower)
    expect([await stateOf(before), await stateOf(after)]).to.deep.equal(['OPEN', 'OPEN'])
  })

  it('when a position is deleveraged, both sides close and the counterparty is paid', async () => {
    const { exchange, follower, alice, bob } = fixture.context
    const backstop = await withBackstop()
    await fixture.fundAndFollow()
    await fixture.trade(fixture.pair(500))
    const { trader, actionId, asOf, report } = await afterPriceDrop()
    await (await trader.deleverage(actionId, asOf, alice.address, [bob.address], [400], report)).wait()
    await catchUp(follower)
    await audit(backstop)
    expect((await exchange.trader.position(bob.address)).size).to.equal(-100n)
    expect(await causes()).to.deep.equal(['deleveraged false'])
    // 0.4 at 80, where alice's equity is zero. Bob's short from 100 gains 8, and its margin share is released.
    const closed = { deleveraged_steps: 400, deleveraged_value: e18('32') }
    await expectRisk({ deleveragings: 1, ...closed, payouts: e18('8') + e18('40') / 5n })
    const own = fixture.context.test.db
      .selectFrom('read.account_transactions')
      .where('type', '=', 'liquidation')
    const amounts = await own.select(['amount', 'available_margin_delta']).orderBy('user_id').execute()
    expect(amounts).to.have.deep.members([
      { amount: e18('8'), available_margin_delta: 0n },
      { amount: e18('8'), available_margin_delta: e18('16') },
    ])
    expect(await fixture.mismatches()).to.deep.equal([])
    await fixture.expectSameAsFresh()
  })

  it('when an inheritance fails, no position changes and no mismatch is recorded', async () => {
    const { follower, alice } = fixture.context
    await fixture.fundAndFollow()
    await fixture.trade(fixture.pair(500))
    const { trader, actionId, asOf, report } = await afterPriceDrop()
    await (await trader.inheritPosition(actionId, asOf, alice.address, report)).wait()
    await catchUp(follower)
    await fixture.audit()
    await expectRisk({ failed_inheritances: 1 })
    expect(await causes()).to.deep.equal([])
    expect(await fixture.mismatches()).to.deep.equal([])
  })

  it('when the market winds down, deficits, covers and claims are applied to the wei', async () => {
    const { exchange, follower, alice, bob } = fixture.context
    const backstop = await withBackstop()
    await fixture.fundAndFollow()
    await fixture.trade(fixture.pair(500))
    const second = (await exchange.latestSecond()) + 60
    await exchange.rpc('evm_setNextBlockTimestamp', second)
    const proof = await exchange.report(second * 1000, e18('78') as Price)
    const trader = exchange.trader.connect(await exchange.provider.getSigner(1))
    await (await trader.poke({ price: e18('78'), observedAt: second * 1000, proof })).wait()
    await (await trader.requestFreeze()).wait()
    await exchange.rpc('evm_increaseTime', 86_402)
    await (await trader.freeze()).wait()
    await (await trader.reportInsolvent([alice.address, bob.address])).wait()
    await exchange.deposit({ address: exchange.spec.trader }, '0.5')
    await (await trader.connect(bob).coverDeficit(e18('0.5'))).wait()
    await exchange.rpc('evm_increaseTime', 3 * 86_400 + 1)
    await (await trader.claim(bob.address)).wait()
    await catchUp(follower)
    await audit(backstop)
    expect(await causes()).to.deep.equal([
      'insolvency_reported false',
      'deficit_covered false',
      'claimed false',
    ])
    // A long of 0.5 from 100 with a margin of 10 lacks 1 at 78.
    await expectRisk({ deficits: 1, deficit: e18('1'), covered: e18('0.5') })
    expect(await fixture.mismatches()).to.deep.equal([])
    await fixture.expectSameAsFresh()
  })
})
