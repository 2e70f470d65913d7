/** The migration that renames statuses and journal values carries stored rows over, and its way back restores them. */
import { expect } from 'chai'
import { sql } from 'kysely'
import { after, before, describe, it } from 'mocha'
import { createMigrator, migrate } from '../../db/migrator.ts'
import { connect, type TestDatabase } from '../indexer/support/database.ts'
import { emptyDatabase } from '../support/postgres.ts'

const BEFORE = [
  { kind: 'batch_unwound', batch_id: 1, why: 'batch_unwound stays in other fields' },
  { kind: 'positions_moved', cause: 'insolvent_listed', rollback: false },
  { kind: 'order_ended', note: '"cause": "insolvent_listed"' },
]
const AFTER = [
  { ...BEFORE[0], kind: 'batch_voided' },
  { ...BEFORE[1], cause: 'insolvency_reported' },
  BEFORE[2],
]

describe('the migration to the new vocabulary', () => {
  let test: TestDatabase
  before(async () => {
    test = connect(await emptyDatabase())
  })
  after(() => test.close())

  const journal = async (table: 'shard_log' | 'journal'): Promise<unknown[]> => {
    const { rows } = await sql<{ row: unknown }>`select row from ${sql.table(table)} order by seq`.execute(
      test.db,
    )
    return rows.map(({ row }) => row)
  }
  const batchStatus = async (): Promise<unknown> =>
    (await sql<{ status: string }>`select status from batches`.execute(test.db)).rows

  it('when a journal of the previous schema is migrated, its values are renamed, and the way back restores them', async () => {
    await createMigrator(test.db).migrateTo('0009-lean-reads')
    await sql`insert into shards (shard) values ('m1')`.execute(test.db)
    for (const [at, row] of BEFORE.entries()) {
      await sql`insert into shard_log (shard, seq, row) values ('m1', ${at + 1}, ${JSON.stringify(row)})`.execute(
        test.db,
      )
    }
    await sql`
      alter table batches drop constraint batches_market_id_fkey;
      insert into batches (market_id, batch_id, as_of, price, lo, hi, volume, demand, supply, rule, parts, oracle_price,
        oracle_at, oracle_signatures, maker_fee, taker_fee, inputs, status, created_at)
      values (1, 1, 1, 1, 1, 1, 1, 1, 1, 'volume', 1, 1, 1, '0x', 0, 0, '{}', 'UNWOUND', 1)
    `.execute(test.db)
    await migrate(test.db)
    expect(await journal('journal')).to.deep.equal(AFTER)
    expect(await batchStatus()).to.deep.equal([{ status: 'VOIDED' }])
    const { error } = await createMigrator(test.db).migrateTo('0009-lean-reads')
    expect(error).to.equal(undefined)
    expect(await journal('shard_log')).to.deep.equal(BEFORE)
    expect(await batchStatus()).to.deep.equal([{ status: 'UNWOUND' }])
  })
})
