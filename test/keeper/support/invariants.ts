/** What holds in the database between any two transactions. */
import { expect } from 'chai'
import { MarketBook } from '../../../domain/book/market-book.ts'
import { marketShard } from '../../../domain/journal/journal-row.ts'
import { executableSteps } from '../../../domain/orders/executable.ts'
import { isReservable } from '../../../domain/orders/open-order.ts'
import { isLeaving, isTerminal, type OrderLife } from '../../../domain/orders/order-state.ts'
import { reservationPerStep } from '../../../domain/orders/reservation.ts'
import type { Steps, UserId } from '../../../domain/units.ts'
import { projectAll } from '../../../indexer/project/project-shards.ts'
import { matchedPosition, withMirror } from '../../support/mirror.ts'
import type { MarketFixture } from './market-fixture.ts'
import { type MatchedFill, matchedFills } from './matched-fills.ts'

/** Fails unless every account holds back exactly what its orders do, and positions and fills add up. */
export async function expectConsistent(fixture: MarketFixture): Promise<void> {
  const orders = await fixture.orders()
  const accounts = await withMirror(fixture.db).selectFrom('accounts').selectAll().execute()
  // A block that leaves the chain takes its credits with it, until its parts are mined again.
  const fills = await matchedFills(fixture.db)
  const retried = fills.filter(({ status }) => status === 'RETRYING')
  for (const { user_id, free, reserved } of accounts) {
    const own = orders.filter(({ account }) => account === user_id)
    expect(reserved, `reserved of ${user_id}`).to.equal(
      own.reduce((sum, order) => sum + order.reserved + order.held, 0n),
    )
    const canPay = free >= reserved || retried.length > 0
    expect(canPay, `account ${user_id} can pay for what it holds back`).to.equal(true)
  }
  for (const order of orders) {
    const perStep =
      order.openable === 0 ? 0n : reservationPerStep(fixture.spec, { ...order, limit: order.price })
    expect(order.reserved, order.orderId).to.equal(perStep * BigInt(order.openable))
    if (!isReservable(order)) expect(order.reserved, order.orderId).to.equal(0n)
    if (isTerminal(order.status)) expect([order.settling, order.held], order.orderId).to.deep.equal([0, 0n])
    expect(isTerminal(order.status)).to.equal(order.endedAt !== null)
  }
  await expectFillsAddUp(
    fixture,
    fills.filter(({ status }) => status !== 'FAILED'),
  )
  // An order that comes back with its block has its slot, which another may have got meanwhile: it is the first to settle again.
  if (retried.length === 0) await expectSlotsApart(fixture)
}

async function expectFillsAddUp({ db, spec }: MarketFixture, fills: readonly MatchedFill[]): Promise<void> {
  const orders = await db.selectFrom('orders').selectAll().execute()
  for (const order of orders) {
    const own = fills.filter(({ orderId }) => orderId === order.order_id)
    expect(
      own.reduce((sum, { steps }) => sum + steps, 0),
      order.order_id,
    ).to.equal(order.filled + order.settling)
    const open = own.filter(({ status }) => ['MATCHED', 'SUBMITTED', 'RETRYING'].includes(status))
    expect(
      open.reduce((sum, { steps }) => sum + steps, 0),
      order.order_id,
    ).to.equal(order.settling)
    expect(
      open.reduce((sum, { held }) => sum + held, 0n),
      order.order_id,
    ).to.equal(order.held)
  }
  const positions = await withMirror(db)
    .selectFrom('positions')
    .selectAll()
    .where('market_id', '=', spec.marketId)
    .execute()
  expect(positions.reduce((sum, { matched_size }) => sum + matched_size, 0)).to.equal(0)
  expect(positions.reduce((sum, { size }) => sum + size, 0)).to.equal(0)
  if (fills.every(({ status }) => status === 'MINED' || status === 'CONFIRMED')) {
    for (const row of positions) {
      const matched = [
        row.matched_size,
        row.matched_entry_notional,
        row.matched_folded_margin,
        row.matched_leverage,
      ]
      expect(matched).to.deep.equal([row.size, row.entry_notional, row.folded_margin, row.leverage])
    }
  }
}

/** No two live orders of a maker share a partial slot. */
async function expectSlotsApart({ db }: MarketFixture): Promise<void> {
  const rows = await db
    .selectFrom('orders')
    .select(['maker', 'partial_slot'])
    .where('partial_slot', 'is not', null)
    .where('ended_at', 'is', null)
    .execute()
  const keys = rows.map(({ maker, partial_slot }) => `${maker}#${partial_slot}`)
  expect(new Set(keys).size).to.equal(keys.length)
}

/** Fails unless the book that is fed row by row equals the one of the table's orders, which equals the engine's. */
export async function expectSameBook(fixture: MarketFixture): Promise<void> {
  const { marketId } = fixture.spec
  const liquidations = await fixture.db.selectFrom('liquidations').selectAll().execute()
  const widenings = new Map(liquidations.map((row) => [row.order_id, row.widenings]))
  const orders = (await fixture.orders()).map((order) => ({
    ...order,
    widenings: order.forced ? (widenings.get(order.orderId) ?? 0) : 0,
  }))
  const loaded = new MarketBook(
    fixture.spec,
    orders.filter(({ orderId }) => orderId.startsWith(`${marketId}-`)),
  )
  const rows = await fixture.db
    .selectFrom('journal')
    .select(['seq', 'row'])
    .where('shard', '=', marketShard(fixture.spec.marketId))
    .orderBy('seq')
    .execute()
  const fed = new MarketBook(fixture.spec, [])
  for (const { seq, row } of rows) fed.apply(seq, row as never)
  const stale = fed.drainStaleAccounts()
  fed.insertAll(orders.filter(({ account }) => stale.has(account)))
  expect(fed.book.orders()).to.deep.equal(loaded.book.orders())
  const running = liquidations.toSorted((a, b) => a.number - b.number)
  expect([...fed.liquidating]).to.deep.equal(running.map(({ user_id, number }) => [user_id, number]))
  expect(fed.waiting.orders()).to.deep.equal(loaded.waiting.orders())
  await expectLoaded(fixture, loaded)
}

/** Fails unless the engine's book is the one of the table's orders, and its positions are the table's. */
async function expectLoaded({ db, spec, engine }: MarketFixture, book: MarketBook): Promise<void> {
  await engine.decide(() => null)
  const own = engine.state.books.of(spec.marketId)
  expect(own.book.orders()).to.deep.equal(book.book.orders())
  expect(own.waiting.orders()).to.deep.equal(book.waiting.orders())
  const rows = await withMirror(db)
    .selectFrom('positions')
    .selectAll()
    .where('market_id', '=', spec.marketId)
    .execute()
  const matched = engine.state.marketIndexes.matched(spec.marketId)
  for (const row of rows) expect(matched.of(row.user_id as UserId)).to.deep.equal(matchedPosition(row))
  for (const row of rows.filter(({ matched_size }) => matched_size === 0))
    expect(matchedPosition(row)).to.include({ entryNotional: 0n, foldedMargin: 0n })
}

/** The reason for which it will end is readable. */
const isEnding = (order: Pick<OrderLife, 'status' | 'closingReason'>): boolean =>
  order.status === 'CANCEL_PENDING_FINALIZE' || isLeaving(order)

/** Fails unless what readers see, projected from the log alone, says what the write side says. */
export async function expectSameReadModel(fixture: MarketFixture): Promise<void> {
  const { db } = fixture
  await projectAll(db, { limit: 500, killPoint() {} })
  const seen = await db.selectFrom('read.orders').selectAll().orderBy('seq').orderBy('order_id').execute()
  const orders = await fixture.orders()
  expect(
    seen.map(
      ({ order_id, status, status_reason, filled, settling, reserved, held, openable, triggered }) => ({
        ...{ order_id, status, status_reason, filled, settling, reserved, held, openable, triggered },
      }),
    ),
  ).to.deep.equal(
    orders.map(({ orderId, status, filled, settling, reserved, held, openable, triggered, ...order }) => ({
      ...{
        order_id: orderId,
        status,
        status_reason: isEnding({ ...order, status }) ? order.closingReason : order.statusReason,
        filled,
        settling,
        reserved: reserved + held,
        ...{ held, openable, triggered },
      },
    })),
  )
  const positions = await withMirror(db).selectFrom('positions').selectAll().execute()
  for (const { user_id, size, pending } of await db.selectFrom('read.positions').selectAll().execute()) {
    const own = positions.find((row) => row.user_id === user_id)
    expect([size, pending], `position of ${user_id}`).to.deep.equal([
      own?.size,
      (own?.matched_size ?? 0) - (own?.size ?? 0),
    ])
  }
  await expectSameLevels(fixture)
}

/** The levels promise what the book can execute on the matched positions. */
async function expectSameLevels(fixture: MarketFixture): Promise<void> {
  const { book } = new MarketBook(fixture.spec, await fixture.orders())
  const positions = await withMirror(fixture.db).selectFrom('positions').selectAll().execute()
  const matched = new Map(positions.map(({ user_id, matched_size }) => [user_id, matched_size as Steps]))
  const limits = book.orders().filter(({ type }) => type === 'LIMIT')
  const shares = [...Map.groupBy(limits, ({ account }) => account)].flatMap(([account, own]) => {
    const executable = executableSteps(matched.get(account) ?? (0 as Steps), own)
    return own.map(({ seq, side, limit }) => ({ level: `${side} ${limit}`, steps: executable.get(seq) ?? 0 }))
  })
  const levels = [
    ...Map.groupBy(
      shares.filter(({ steps }) => steps > 0),
      ({ level }) => level,
    ),
  ].map(([level, own]) => `${level}: ${own.reduce((sum, { steps }) => sum + steps, 0)} in ${own.length}`)
  const seen = await fixture.db.selectFrom('read.book_levels').selectAll().execute()
  const shown = seen.map(
    ({ side, price, quantity, order_count }) => `${side} ${price}: ${quantity} in ${order_count}`,
  )
  expect(shown.toSorted()).to.deep.equal(levels.toSorted())
}
