/** The follower against a real chain, the real contracts and a real database: the write side matches the contracts' state. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { Quote, Steps } from '../../../domain/units.ts'
import { withMirror } from '../../support/mirror.ts'
import { expectConservation, expectPositions } from '../support/audit.ts'
import type { TestDatabase } from '../support/database.ts'
import { addressOf, catchUp, type ExchangeDatabase, projectAll } from '../support/exchange-fixture.ts'
import { useFollowerFixture } from '../support/follower-fixture.ts'
import { matchPart, writeRows } from '../support/matched-part.ts'

const modeOf = async ({ db }: TestDatabase): Promise<string> =>
  (await db.selectFrom('markets').select('mode').executeTakeFirstOrThrow()).mode

/** The order leaves the book, and ends once its settling part is mined. */
async function cancelPending({ db, engine }: ExchangeDatabase, maker: string): Promise<void> {
  const { order_id, user_id, market_id } = await db
    .selectFrom('orders')
    .select(['order_id', 'user_id', 'market_id'])
    .where('maker', '=', maker)
    .executeTakeFirstOrThrow()
  const order = { order_id, user_id, status: 'CANCEL_PENDING_FINALIZE', reason: 'USER_CANCELLED' } as const
  await writeRows(engine, market_id, [
    { kind: 'order_ending', ...order, note: null, reserved_delta: '0', at: Date.now() },
  ])
}

describe('following the chain', () => {
  const fixture = useFollowerFixture()

  // ---------------------------------------------------------------------- facts

  it('when an address deposits for the first time, it creates a user with that balance', async () => {
    const { exchange, test, follower, alice } = fixture.context
    await exchange.deposit(alice, '250.5')
    await catchUp(follower)
    await fixture.audit()
    const read = await test.db
      .selectFrom('read.users')
      .innerJoin('read.balances', 'read.balances.user_id', 'read.users.user_id')
      .select(['address', 'free'])
      .execute()
    expect(read).to.deep.equal([{ address: addressOf(alice), free: 250_500_000_000_000_000_000n }])
  })

  it('when a user withdraws, the amount leaves free at the request and pending at the payment', async () => {
    const { exchange, test, follower, alice } = fixture.context
    await fixture.fund()
    await (await exchange.bank.connect(alice).requestWithdrawal(400n)).wait()
    await catchUp(follower)
    await fixture.audit()
    await exchange.rpc('evm_increaseTime', 100)
    await (await exchange.bank.connect(alice).withdraw()).wait()
    await catchUp(follower)
    await fixture.audit()
    const causes = await test.db
      .selectFrom('journal')
      .select('row')
      .where('shard', '=', 'accounts')
      .orderBy('seq')
      .execute()
    expect(causes.map(({ row }) => ('cause' in row ? row.cause : row.kind))).to.deep.equal([
      'user_created',
      'deposit',
      'user_created',
      'deposit',
      'withdrawal_request',
      'withdrawal',
    ])
  })

  it('when a batch is settled, it updates positions, balances, orders and fills', async () => {
    const { test, follower } = fixture.context
    await fixture.fundAndFollow()
    const hash = await fixture.trade(fixture.pair(500))
    await catchUp(follower)
    await fixture.audit()
    const orders = await test.db.selectFrom('orders').select(['status', 'status_reason', 'held']).execute()
    expect(orders).to.deep.equal(Array(2).fill({ status: 'FILLED', status_reason: 'FILLED', held: 0n }))
    const read = await test.db.selectFrom('read.fills').select(['status', 'tx_hash', 'fee']).execute()
    expect(read.map(({ status, tx_hash }) => [status, tx_hash])).to.deep.equal([
      ['MINED', hash],
      ['MINED', hash],
    ])
    expect(read.some(({ fee }) => fee === 0n) && read.some(({ fee }) => fee !== null && fee > 0n)).to.equal(
      true,
    )
    const batch = await test.db.selectFrom('batches').select('status').executeTakeFirstOrThrow()
    const action = await test.db.selectFrom('actions').select('status').executeTakeFirstOrThrow()
    expect([batch.status, action.status]).to.deep.equal(['SETTLED', 'MINED'])
    expect(await fixture.mismatches()).to.deep.equal([])
  })

  it('when a position grows, shrinks and flips, it accumulates the realized profit', async () => {
    const { test, follower, alice, bob } = fixture.context
    await fixture.fundAndFollow()
    for (const [side, other, fill, ticks] of [
      ['LONG', 'SHORT', 500, 1_000],
      ['LONG', 'SHORT', 100, 1_010],
      ['SHORT', 'LONG', 250, 1_020],
      ['SHORT', 'LONG', 900, 1_020],
    ] as const) {
      const fills = [
        { by: alice, side, fill, salt: fixture.salt() },
        { by: bob, side: other, fill, salt: fixture.salt() },
      ]
      await fixture.trade(fills, ticks)
      await catchUp(follower)
      await fixture.audit()
    }
    const { size, realized_pnl, pending } = await test.db
      .selectFrom('read.positions')
      .innerJoin('read.users', 'read.users.user_id', 'read.positions.user_id')
      .select(['size', 'realized_pnl', 'pending'])
      .where('address', '=', addressOf(alice))
      .executeTakeFirstOrThrow()
    // 500 x 20 ticks and 100 x 10 ticks, at 0.0001 USDM per tick and step.
    expect({ size, realized_pnl, pending }).to.deep.equal({
      ...{ size: -550, realized_pnl: 1_100_000_000_000_000_000n, pending: 0 },
    })
    expect(await fixture.mismatches()).to.deep.equal([])
  })

  it('when free does not cover a settled batch, the pending withdrawal pays the margin', async () => {
    const { exchange, test, follower, bob } = fixture.context
    await fixture.fundAndFollow()
    await (
      await exchange.bank.connect(bob).requestWithdrawal((await exchange.bank.account(bob.address)).free)
    ).wait()
    await fixture.trade(fixture.pair(500))
    await catchUp(follower)
    await fixture.audit()
    const { free, pending_withdrawal } = await withMirror(test.db)
      .selectFrom('accounts')
      .innerJoin('users', 'users.user_id', 'accounts.user_id')
      .select(['free', 'pending_withdrawal'])
      .where('address', '=', addressOf(bob))
      .executeTakeFirstOrThrow()
    expect(free).to.equal(0n)
    expect(pending_withdrawal > 0n && pending_withdrawal < 10_000n * 10n ** 18n).to.equal(true)
  })

  it('when one more block is mined, it confirms the fills', async () => {
    const { exchange, test, follower } = fixture.context
    await fixture.fundAndFollow()
    await fixture.trade(fixture.pair(500))
    await catchUp(follower)
    await exchange.rpc('anvil_mine', '0x1')
    await catchUp(follower)
    await fixture.audit()
    const fills = await test.db.selectFrom('read.fills').select('status').execute()
    expect(fills.map(({ status }) => status)).to.deep.equal(['CONFIRMED', 'CONFIRMED'])
  })

  it('when an order with a pending cancel is partly filled, it cancels the order', async () => {
    const { test, follower, alice } = fixture.context
    await fixture.fundAndFollow()
    await fixture.trade(fixture.pair(300, { quantity: 900, slot: 0 }))
    await cancelPending(test, addressOf(alice))
    await catchUp(follower)
    await fixture.audit()
    const order = await test.db
      .selectFrom('orders')
      .selectAll()
      .where('maker', '=', addressOf(alice))
      .executeTakeFirstOrThrow()
    const { status, status_reason, filled, settling, reserved } = order
    expect({ status, status_reason, filled, settling, reserved }).to.deep.equal({
      ...{ status: 'CANCELLED', status_reason: 'USER_CANCELLED', filled: 300, settling: 0, reserved: 0n },
    })
    const events = await test.db
      .selectFrom('read.order_events')
      .select('kind')
      .where('order_id', '=', order.order_id)
      .orderBy('seq')
      .orderBy('place')
      .execute()
    expect(events.map(({ kind }) => kind)).to.deep.equal(['CREATED', 'PARTIALLY_FILLED', 'CANCELLED'])
  })

  it('when salts are cancelled on the chain, it cancels the open order', async () => {
    const { exchange, test, follower, alice } = fixture.context
    await fixture.fundAndFollow()
    await fixture.trade(fixture.pair(300, { quantity: 900, slot: 0, salt: 77n }))
    await catchUp(follower)
    await (await exchange.trader.connect(alice).cancelSalts([77n])).wait()
    await catchUp(follower)
    await fixture.audit()
    const order = await test.db
      .selectFrom('read.orders')
      .select(['status', 'status_reason'])
      .where('salt', '=', 77)
      .executeTakeFirstOrThrow()
    expect(order).to.deep.equal({ status: 'CANCELLED', status_reason: 'USER_CANCELLED' })
    expect(await test.db.selectFrom('read.book_levels').selectAll().execute()).to.deep.equal([])
  })

  it('when a withdrawal request leaves orders uncovered, it cancels the newest of them', async () => {
    const { exchange, test, follower, alice } = fixture.context
    await fixture.fundAndFollow()
    await fixture.trade(fixture.pair(300, { quantity: 900, slot: 0 }))
    await fixture.trade(fixture.pair(300, { quantity: 500, slot: 1 }))
    await catchUp(follower)
    // The rest covers the 600 open steps of the first order and none of the 200 of the second.
    const free = (await exchange.bank.account(alice.address)).free
    await (await exchange.bank.connect(alice).requestWithdrawal(free - 7_000n)).wait()
    await catchUp(follower)
    await fixture.audit()
    const orders = await test.db
      .selectFrom('read.orders')
      .select(['status', 'status_reason', 'reserved'])
      .where('quantity', '>', 300)
      .orderBy('seq')
      .execute()
    expect(orders).to.deep.equal([
      { status: 'OPEN', status_reason: null, reserved: 6_000n },
      { status: 'CANCELLED', status_reason: 'INSUFFICIENT_MARGIN', reserved: 0n },
    ])
  })

  it('when fees are collected, it credits the treasury', async () => {
    const { exchange, test, follower, users } = fixture.context
    await fixture.fundAndFollow()
    await fixture.trade(fixture.pair(500))
    const admin = await exchange.provider.getSigner(0)
    await (await exchange.bank.connect(admin).collectFees(exchange.spec.trader)).wait()
    await catchUp(follower)
    await projectAll(test)
    await expectConservation(exchange, test.db, [...users, admin as never])
  })

  // ---------------------------------------------------------------------- mismatches

  it('when a part has no fills in the database, it applies the event and makes the market cancel_only', async () => {
    const { exchange, test, follower } = fixture.context
    await fixture.fund()
    await exchange.send(await exchange.part(fixture.pair(500)))
    await catchUp(follower)
    await fixture.audit()
    expect(await fixture.mismatches()).to.deep.equal(['invalid_batch_trade_participant_coverage'])
    expect(await modeOf(test)).to.equal('cancel_only')
    const matched = await withMirror(test.db)
      .selectFrom('positions')
      .select(['size', 'matched_size'])
      .execute()
    expect(matched.map(({ size, matched_size }) => size === matched_size)).to.deep.equal([true, true])
  })

  it('when a settled fill differs from the matched one, it records a mismatch and applies the event', async () => {
    const { exchange, test, follower, users } = fixture.context
    await fixture.fundAndFollow()
    await fixture.trade(fixture.pair(500))
    fixture.edit((state) => {
      for (const fill of [...state.fills.rows()])
        if (fill.side === 'LONG') state.fills.put({ ...fill, steps: 400 as Steps })
    })
    await catchUp(follower)
    await projectAll(test)
    await expectConservation(exchange, test.db, users)
    await expectPositions(exchange, test.db, users)
    expect(await fixture.mismatches()).to.deep.equal(['missing_expected_position_updates'])
  })

  it('when the rules do not explain a position, it reads the position from the contract', async () => {
    const { exchange, test, follower, alice, bob, users } = fixture.context
    await fixture.fundAndFollow()
    await fixture.trade(fixture.pair(500))
    await catchUp(follower)
    fixture.edit((state) => {
      for (const position of [...state.positions.rows()])
        state.positions.put({ ...position, foldedMargin: -(10n ** 24n) as Quote })
    })
    await fixture.trade([
      { by: alice, side: 'SHORT', fill: 200, salt: fixture.salt() },
      { by: bob, side: 'LONG', fill: 200, salt: fixture.salt() },
    ])
    await catchUp(follower)
    await projectAll(test)
    await expectConservation(exchange, test.db, users)
    await expectPositions(exchange, test.db, users)
    expect(await fixture.mismatches()).to.deep.equal(['trade_events_without_position_updates'])
  })

  it('when a settlement succeeds without an event, it makes the market cancel_only', async () => {
    const { exchange, test, follower, alice } = fixture.context
    await fixture.fundAndFollow()
    const part = await exchange.part(fixture.pair(500))
    const admin = await exchange.provider.getSigner(0)
    const eventless = await admin.sendTransaction({ to: alice.address, value: 1n })
    await matchPart(test, part, eventless.hash)
    await catchUp(follower)
    expect(await fixture.mismatches()).to.deep.equal(['no_trade_execution_events'])
    expect(await modeOf(test)).to.equal('cancel_only')
  })
})
