/** Levels of an earlier schema are corrected to the steps that can execute, and restored on the way back. */
import { expect } from 'chai'
import { sql } from 'kysely'
import { after, before, describe, it } from 'mocha'
import { createMigrator } from '../../db/migrator.ts'
import { connect, type TestDatabase } from '../indexer/support/database.ts'
import { emptyDatabase } from '../support/postgres.ts'

const PREVIOUS = '0016-orders-closed-by'
const NEXT = '0017-executable-levels'

describe('levels of an earlier schema', () => {
  let test: TestDatabase
  before(async () => {
    test = connect(await emptyDatabase())
    await migrateTo(PREVIOUS)
  })
  after(() => test.close())

  async function migrateTo(name: string): Promise<void> {
    const { error } = await createMigrator(test.db).migrateTo(name)
    if (error) throw error
  }

  async function rows(query: string): Promise<string[]> {
    const { rows: found } = await sql.raw<object>(query).execute(test.db)
    return found.map((row) => Object.values(row).join(' '))
  }

  const levels = () =>
    rows('select side, price, quantity, order_count from read.book_levels order by side, price')

  /** User 1 is long 10 and has sells only; user 2 is flat with a buy. `openable` is that of the write side. */
  async function fill(): Promise<void> {
    await sql`
      insert into read.positions (user_id, market_id, size, pending, entry_notional, folded_margin, leverage, updated_at)
        values (1, 1, 7, 3, 0, 0, 1, 1);
      insert into read.orders (order_id, market_id, seq, user_id, maker, signer, hash, salt, side, type, price, quantity, filled, settling,
        trigger, leverage, reduce_only, expiration, status, reserved, accepted_at, updated_at, arrival)
      select '1-' || seq, 1, seq, user_id, 'm', 's', 'h' || seq, seq, side, 'LIMIT', price, quantity, 0, settling, 0, 1, reduce_only, 0,
        'OPEN', 0, 1, 1, seq
      from (values
        (1, 1, 'SHORT', 101, 6, 0, true), (2, 1, 'SHORT', 102, 6, 1, false), (3, 1, 'SHORT', 103, 8, 0, true), (4, 2, 'LONG', 99, 5, 0, false)
      ) o (seq, user_id, side, price, quantity, settling, reduce_only);
      insert into read.book_levels values (1, 'SHORT', 101, 6, 1), (1, 'SHORT', 102, 5, 1), (1, 'SHORT', 103, 8, 1), (1, 'LONG', 99, 5, 1);
      set session_replication_role = replica;
      insert into orders (order_id, market_id, seq, user_id, maker, signer, hash, signature, salt, side, type, price, quantity, settling, trigger,
        leverage, reduce_only, expiration, alive_until, status, openable, reserved_price, reserved, accepted_at)
      select order_id, 1, seq, user_id, maker, signer, hash, 's', salt, side, type, price, quantity, settling, 0, 1, reduce_only, 0, 0, status,
        case seq when 4 then 5 else 0 end, 1, 0, 1
      from read.orders;
      set session_replication_role = default
    `.execute(test.db)
  }

  it('when the schema is migrated and taken back, levels count the executable steps and then all steps again', async () => {
    await fill()
    const original = await levels()
    await migrateTo(NEXT)
    // The position of 10 goes to 6 steps at 101 and 4 of the 5 at 102; none is left for 103.
    expect(await levels()).to.deep.equal(['LONG 99 5 1', 'SHORT 101 6 1', 'SHORT 102 4 1'])
    expect(await rows('select seq, openable, uncovered from read.orders order by seq')).to.deep.equal([
      ...['1 0 6', '2 0 5', '3 0 8', '4 5 0'],
    ])
    await migrateTo(PREVIOUS)
    expect(await levels()).to.deep.equal(original)
  })
})
