/** The migration of the fee allowance keeps the reservation of stored orders, and its way back restores their rows. */
import { expect } from 'chai'
import { sql } from 'kysely'
import { after, before, describe, it } from 'mocha'
import { createMigrator, migrate } from '../../db/migrator.ts'
import { connect, type TestDatabase } from '../indexer/support/database.ts'
import { emptyDatabase } from '../support/postgres.ts'

const PREVIOUS = '0011-process-roles'

describe('the migration of the fee allowance', () => {
  let test: TestDatabase
  before(async () => {
    test = connect(await emptyDatabase())
    await createMigrator(test.db).migrateTo(PREVIOUS)
    await sql`
      insert into markets (market_id, symbol, kind, trader, mode, spec) values
        (1, 'A', 'perpetual', '0x1', 'open', '{}'),
        (2, 'B', 'binary_future', '0x2', 'open', '{}');
      insert into users (address, created_at) values ('0x1', 1);
    `.execute(test.db)
    await insertOrder({ id: '1-1', market: 1, side: 'SHORT', price: 1000, reservedPrice: 1050 })
    await insertOrder({ id: '1-2', market: 1, side: 'SHORT', price: 0, reservedPrice: 1050 })
    await insertOrder({ id: '1-3', market: 1, side: 'LONG', price: 1000, reservedPrice: 1000 })
    await insertOrder({ id: '2-4', market: 2, side: 'SHORT', price: 400, reservedPrice: 400 })
  })
  after(() => test.close())

  const insertOrder = (order: {
    readonly id: string
    readonly market: number
    readonly side: string
    readonly price: number
    readonly reservedPrice: number
  }) =>
    sql`
      insert into orders (order_id, market_id, seq, user_id, maker, signer, hash, salt, side, type, price, quantity, trigger, leverage,
        reduce_only, expiration, alive_until, status, openable, reserved_price, reserved, accepted_at, signature)
      values (${order.id}, ${order.market}, ${Number(order.id.slice(2))}, 1, '0x1', '0x1', ${order.id}, ${Number(order.id.slice(2))},
        ${order.side}, ${order.price === 0 ? 'MARKET' : 'LIMIT'}, ${order.price}, 10, 0, 1, false, 0, 0, 'OPEN', 10,
        ${order.reservedPrice}, 77, 1, '0x')
    `.execute(test.db)
  const stored = async (): Promise<unknown[]> => {
    const { rows } = await sql<{ order_id: string; reserved_price: number; reserved: bigint }>`
      select order_id, reserved_price, reserved from orders order by order_id`.execute(test.db)
    return rows.map(({ order_id, reserved_price, reserved }) => [order_id, reserved_price, reserved])
  }
  const BEFORE = [
    ['1-1', 1050, 77n],
    ['1-2', 1050, 77n],
    ['1-3', 1000, 77n],
    ['2-4', 400, 77n],
  ]

  it('when live orders are migrated, a limit sell keeps the price of its allowance, and the way back restores every row', async () => {
    await migrate(test.db)
    expect(await stored()).to.deep.equal([['1-1', 2100, 77n], ...BEFORE.slice(1)])
    const { error } = await createMigrator(test.db).migrateTo(PREVIOUS)
    expect(error).to.equal(undefined)
    expect(await stored()).to.deep.equal(BEFORE)
  })

  it('when a live limit sell was accepted under the new rule at an odd price, the way back is refused and changes nothing', async () => {
    await migrate(test.db)
    await insertOrder({ id: '1-5', market: 1, side: 'SHORT', price: 990, reservedPrice: 1103 })
    const migrated = await stored()
    const { error } = await createMigrator(test.db).migrateTo(PREVIOUS)
    expect(String(error)).to.include('1-5')
    expect(await stored()).to.deep.equal(migrated)
  })
})
