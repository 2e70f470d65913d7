/** Rows that a later version has written: the read model stays behind them instead of misreading them. */
import { expect } from 'chai'
import { after, beforeEach, describe, it } from 'mocha'
import type { JournalRow } from '../../../domain/journal/journal-row.ts'
import { projectChunk } from '../../../indexer/project/project-chunk.ts'
import { registerShards } from '../../../indexer/project/project-shards.ts'
import { storeGroup } from '../../support/rows/journal.ts'
import { freshDatabase, type TestDatabase } from '../support/database.ts'
import { placed } from '../support/placements.ts'
import { appendToJournal } from '../support/read-model.ts'

const LATER: Readonly<Record<string, JournalRow>> = {
  'a version': { ...placed(1, 2), v: 99 } as JournalRow,
  'a kind': { ...placed(1, 2), kind: 'order_dreamt' } as unknown as JournalRow,
}

describe('a projection of rows of a later version', () => {
  const opened: TestDatabase[] = []
  let test: TestDatabase
  beforeEach(async () => {
    test = await freshDatabase()
    opened.push(test)
    await appendToJournal(test.db, 'm1', [])
    await registerShards(test.db)
  })
  after(() => Promise.all(opened.map((each) => each.close())))

  for (const [name, row] of Object.entries(LATER))
    it(`when a row has ${name} that this version does not know, it fails with the row and the remedy, and writes nothing`, async () => {
      const rows = [
        { shard: 'm1', seq: 1, row: placed(1, 1) },
        { shard: 'm1', seq: 2, row },
      ]
      await test.db.transaction().execute((tx) => storeGroup(tx, rows))
      const message = await projectChunk(test.db, ['m1'], { limit: 10, killPoint() {} }).then(
        () => 'projected',
        (error: Error) => error.message,
      )
      expect(message)
        .to.include('row 2 of m1 cannot be read')
        .and.include('start a later version of the indexer')
      expect(await test.db.selectFrom('read.orders').select('order_id').execute()).to.deep.equal([])
    })
})
