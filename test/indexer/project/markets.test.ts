import { expect } from 'chai'
import { after, before, beforeEach, describe, it } from 'mocha'
import type { JournalRow } from '../../../domain/journal/journal-row.ts'
import { projectAll } from '../../../indexer/project/project-shards.ts'
import { rebuild } from '../../../indexer/project/rebuild.ts'
import { freshDatabase, type TestDatabase } from '../support/database.ts'
import { appendToJournal, clearJournal, dumpReadModel } from '../support/read-model.ts'

const options = { limit: 1_000, killPoint: () => {} }

describe('read.markets', () => {
  let test: TestDatabase
  before(async () => {
    test = await freshDatabase()
  })
  beforeEach(() => clearJournal(test.db))
  after(() => test.close())

  const listed = (kind: string, price_protection?: string): JournalRow => ({
    kind: 'market_listed',
    spec: { symbol: kind, kind } as never,
    ...(price_protection !== undefined && { price_protection }),
  })
  const announced = (price_protection: string, next_price_protection: string, at: number): JournalRow => ({
    kind: 'protection_announced',
    ...{ at, price_protection, next_price_protection, next_price_protection_at: at + 100 },
  })

  async function project(...rows: JournalRow[]) {
    await appendToJournal(test.db, 'm1', rows)
    await projectAll(test.db, options)
    const live = await dumpReadModel(test.db)
    await rebuild(test.db, options)
    expect(await dumpReadModel(test.db)).to.deep.equal(live)
    return test.db
      .selectFrom('read.markets')
      .select(['price_protection', 'next_price_protection', 'next_price_protection_at'])
      .executeTakeFirstOrThrow()
  }

  it('when a market is listed, it has the width of its row and no announced one', async () => {
    expect(await project(listed('perpetual', '5'))).to.deep.equal({
      ...{ price_protection: 5n, next_price_protection: null, next_price_protection_at: null },
    })
  })

  it('when the row of the listing has no width, it is the default of the kind', async () => {
    expect(await project(listed('binary_future'))).to.include({ price_protection: 30_000_000_000_000_000n })
  })

  it('when widths are announced, the last announcement is shown with the width in force at its time', async () => {
    const rows = [listed('future', '5'), announced('5', '6', 10), announced('6', '7', 200)]
    expect(await project(...rows)).to.deep.equal({
      ...{ price_protection: 6n, next_price_protection: 7n, next_price_protection_at: 300 },
    })
  })
})
