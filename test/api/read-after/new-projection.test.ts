/** A projection is added to a database with a long journal: it is filled on its own, and reads of its table wait for it. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { createTableProgress } from '../../../api/commands/table-progress.ts'
import { createCompleteness, type ReadScope } from '../../../api/read-after/completeness.ts'
import { createReadAfter, type ReadAfter } from '../../../api/read-after/read-after.ts'
import { createNotifications } from '../../../db/notifications.ts'
import { PROJECTED_TABLES } from '../../../db/read-schema.ts'
import { marketShard } from '../../../domain/journal/journal-row.ts'
import { fillStep } from '../../../indexer/project/fill.ts'
import { projectAll, registerShards } from '../../../indexer/project/project-shards.ts'
import { PROJECTIONS } from '../../../indexer/project/projections.ts'
import { systemClock as clock } from '../../../service/clock.ts'
import { connect, freshDatabase, type TestDatabase } from '../../indexer/support/database.ts'
import { createPlacedCounts, placedCounts, readPlacedCounts } from '../../indexer/support/extra-projection.ts'
import { placements } from '../../indexer/support/placements.ts'
import { appendToJournal, dumpReadModel } from '../../indexer/support/read-model.ts'

const killPoint = () => {}
const options = { limit: 500, killPoint, projections: [...PROJECTIONS, placedCounts] }
const COUNTS = { tables: ['read.placed_counts'] } as unknown as ReadScope
const ORDERS: ReadScope = { tables: ['read.orders'] }
const LENGTH = 4_000

describe('a new projection', () => {
  let test: TestDatabase
  let readAfter: ReadAfter
  let reader: TestDatabase
  let notifications: ReturnType<typeof createNotifications>
  const known = PROJECTED_TABLES as Record<string, readonly string[]>

  before(async () => {
    test = await freshDatabase()
    await appendToJournal(test.db, marketShard(1), placements(1, 1, LENGTH))
    await projectAll(test.db, { limit: 500, killPoint })
    known.placed_counts = placedCounts.tables
    await createPlacedCounts(test.db)
    reader = connect(test.url)
    notifications = createNotifications(test.url, 'test')
    const completeness = createCompleteness(reader.db, clock)
    const limits = { readAfterWaitMs: 10_000, readAfterWaiters: 10, readAfterPollMs: 60_000 }
    const tables = createTableProgress(test.db)
    readAfter = createReadAfter(
      { db: test.db, clock, notifications, completeness, tables, onStale() {} },
      limits,
    )
    await notifications.start()
  })
  after(async () => {
    readAfter.stop()
    await notifications.stop()
    await reader.close()
    await test.close()
    delete known.placed_counts
  })

  /** The bookmark of a placement before the projection existed. */
  const old = {
    query: { read_after_shard_id: 'm1.1', read_after_shard_seq: '10' },
    ...{ caller: null, ip: '127.0.0.1' },
  }
  const unmarked = { ...old, query: {} }
  const total = async (): Promise<number> =>
    [...(await readPlacedCounts(test.db)).values()].reduce((sum, count) => sum + count, 0)
  const codeOf = (read: Promise<unknown>): Promise<string> =>
    read.then(
      () => 'answered',
      (error: { code?: string }) => String(error.code),
    )

  it('when it is registered, it is filled on its own, old bookmarks stay valid, and reads of it wait', async () => {
    const before = await dumpReadModel(test.db)
    expect(await codeOf(readAfter.read(unmarked, COUNTS, total)), 'before an indexer has it').to.equal(
      'READ_MODEL_FILLING',
    )
    await registerShards(test.db, options.projections)
    const counted = readAfter.read(old, COUNTS, total)
    for (let steps = 0; steps < 3; steps++) await fillStep(test.db, options)
    await sleep(50)
    expect(await total()).to.be.within(1, LENGTH - 1)
    expect(await readAfter.read(old, ORDERS, async () => 'shown')).to.equal('shown')
    expect(await codeOf(readAfter.read(unmarked, COUNTS, total))).to.equal('READ_MODEL_FILLING')
    expect(readAfter.waiting).to.equal(1)
    await projectAll(test.db, options)
    expect(await counted).to.equal(LENGTH)
    expect(await readAfter.read(unmarked, COUNTS, total)).to.equal(LENGTH)
    const { 'read.places': places, ...tables } = await dumpReadModel(test.db)
    const { 'read.places': placesBefore, ...tablesBefore } = before
    expect(tables).to.deep.equal(tablesBefore)
    expect(places).to.include.members(placesBefore as string[])
  })
})
