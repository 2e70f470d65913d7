import { expect } from 'chai'
import { sql } from 'kysely'
import { after, before, describe, it } from 'mocha'
import { createMigrator } from '../../db/migrator.ts'
import { connect, type TestDatabase } from '../indexer/support/database.ts'
import { binary, future, perpetual } from '../support/markets.ts'
import { freshDatabase } from '../support/postgres.ts'
import { listMarket } from '../support/rows/markets.ts'

const BEFORE = '0023-open-positions'
const AFTER = '0023-reset-as-of'

describe('the migration that resets the time of the last action', () => {
  let test: TestDatabase
  const ahead = Date.now() + 3_600_000
  before(async () => {
    test = connect(await freshDatabase())
    for (const spec of [perpetual, future, binary]) await listMarket(test.db, spec)
    await createMigrator(test.db).migrateTo(BEFORE)
    const asOf = {
      [perpetual.marketId]: ahead,
      [future.marketId]: ahead,
      [binary.marketId]: 1_700_000_000_000,
    }
    for (const [marketId, last] of Object.entries(asOf))
      await sql`update markets set last_as_of = ${last} where market_id = ${Number(marketId)}`.execute(
        test.db,
      )
    const actions = [
      [1, 'MINED', 1_600_000_000_000],
      [2, 'SUBMITTED', 1_600_000_000_200],
      [3, 'VOIDED', ahead],
    ] as const
    for (const [queueNo, status, at] of actions) {
      await sql`
        insert into actions (market_id, queue_no, kind, batch_id, part, as_of, status, created_at)
        values (${perpetual.marketId}, ${queueNo}, 'settle_part', ${queueNo}, 1, ${at}, ${status}, ${at})
      `.execute(test.db)
    }
    const { error } = await createMigrator(test.db).migrateTo(AFTER)
    expect(error).to.equal(undefined)
  })
  after(() => test.close())

  const lastAsOf = async (marketId: number) =>
    (
      await test.db
        .selectFrom('markets')
        .select('last_as_of')
        .where('market_id', '=', marketId)
        .executeTakeFirstOrThrow()
    ).last_as_of

  it('when it is ahead of the clock, the last action that is not voided replaces it', async () => {
    expect(await lastAsOf(perpetual.marketId)).to.equal(1_600_000_000_200)
  })

  it('when it is ahead of the clock and the market has no action, it starts from 0', async () => {
    expect(await lastAsOf(future.marketId)).to.equal(0)
  })

  it('when it is not ahead of the clock, it stays', async () => {
    expect(await lastAsOf(binary.marketId)).to.equal(1_700_000_000_000)
  })
})
