/** An exchange that an engine owns refuses rows of all other writers. */
import { expect } from 'chai'
import { sql } from 'kysely'
import { after, afterEach, before, beforeEach, describe, it } from 'mocha'
import type pg from 'pg'
import { createDb, createPool, type Db } from '../../../db/client.ts'
import { readLease, takeLease } from '../../../db/engine-journal.ts'
import { ask } from '../../../keeper/engine/link/engine.ts'
import { perpetual } from '../../support/markets.ts'
import { freshDatabase, loginOf } from '../../support/postgres.ts'
import { appendRows, lockShard } from '../../support/rows/journal.ts'
import { listMarket } from '../../support/rows/markets.ts'
import { EngineCluster } from '../support/engine-process.ts'

const GUARD = 'the token 0 is not the current one'
const { marketId } = perpetual
const RESTRICTED = { kind: 'market_restricted', mode: 'open', why: 'operator' } as const

const refusalOf = (writing: Promise<unknown>): Promise<string> =>
  writing.then(
    () => 'written',
    (error: Error) => error.message,
  )

const append = (db: Db): Promise<number> =>
  db.transaction().execute(async (tx) => appendRows(tx, await lockShard(tx, 'm1'), [RESTRICTED]))

async function rowsOf(db: Db) {
  const journal = await db.selectFrom('journal').selectAll().orderBy('shard').orderBy('seq').execute()
  const shards = await db.selectFrom('shards').selectAll().orderBy('shard').execute()
  const markets = await db.selectFrom('markets').selectAll().orderBy('market_id').execute()
  return { journal, shards, markets }
}

describe('an exchange that an engine owns', function () {
  this.timeout(60_000)
  let cluster: EngineCluster
  before(async () => {
    cluster = await EngineCluster.create()
    await listMarket(cluster.db, perpetual)
    await cluster.start()
  })
  after(() => cluster.stop())

  it('when the owner of the database appends a row by itself, the transaction is refused, nothing is written, and the engine continues', async () => {
    const before = await rowsOf(cluster.db)
    expect(await refusalOf(append(cluster.db))).to.equal(GUARD)
    expect(await rowsOf(cluster.db)).to.deep.equal(before)

    const operator = await cluster.connect('operator')
    const setting = { kind: 'calendar', calendar: null } as const
    const answer = await ask<'operator'>(operator, { kind: 'operator', marketId, setting }, 30_000)
    expect(answer).to.deep.equal({ kind: 'done' })
    const { journal } = await rowsOf(cluster.db)
    expect(journal.slice(before.journal.length).map(({ row }) => row.kind)).to.deep.equal(['calendar_set'])
  })

  it('when a connection appends a row to the view `journal`, the database refuses it', async () => {
    const inserting = sql`insert into journal (shard, seq, row) values ('m1', 1, '{}')`.execute(cluster.db)
    expect(await refusalOf(inserting)).to.equal('cannot insert into view "journal"')
  })

  for (const [process, refusal] of [
    ['api', 'permission denied for table shards'],
    ['keeper', 'permission denied for table shards'],
    ['indexer', 'permission denied for table engine_tables'],
    ['engine', 'permission denied for table engine_tables'],
  ] as const)
    it(`when a connection of the ${process} appends a row by itself, it is refused`, async () => {
      const db = createDb(
        createPool({ url: await loginOf(cluster.url, process), connections: 1, name: 'test' }),
      )
      const before = await rowsOf(cluster.db)
      expect(await refusalOf(append(db))).to.equal(refusal)
      await db.destroy()
      expect(await rowsOf(cluster.db)).to.deep.equal(before)
    })
})

describe('the first takeover of an exchange', () => {
  let db: Db
  let pool: pg.Pool
  beforeEach(async () => {
    const url = await freshDatabase()
    db = createDb(createPool({ url, connections: 3, name: 'test' }))
    await listMarket(db, perpetual)
    pool = createPool({ url: await loginOf(url, 'engine'), connections: 1, name: 'test engine' })
  })
  afterEach(async () => {
    await pool.end()
    await db.destroy()
  })

  it('when a transaction has appended and not committed, the takeover waits for it', async () => {
    const lease = await readLease(pool)
    let taking: Promise<unknown> = Promise.resolve()
    const order: string[] = []
    await db.transaction().execute(async (tx) => {
      await appendRows(tx, await lockShard(tx, 'm1'), [RESTRICTED])
      taking = takeLease(pool, lease).then((token) => order.push(`token ${token}`))
      await new Promise((resolve) => setTimeout(resolve, 300))
      order.push('commit')
    })
    await taking
    expect(order).to.deep.equal(['commit', 'token 1'])
    expect(await refusalOf(append(db))).to.equal(GUARD)
  })

  it('when a transaction has locked its journal and not appended, the takeover does not wait, and the append is refused', async () => {
    const lease = await readLease(pool)
    const writing = db.transaction().execute(async (tx) => {
      const head = await lockShard(tx, 'm1')
      expect(await takeLease(pool, lease)).to.equal(1)
      await appendRows(tx, head, [RESTRICTED])
    })
    expect(await refusalOf(writing)).to.equal(GUARD)
    expect((await rowsOf(db)).journal.map(({ row }) => row.kind)).to.deep.equal(['market_listed'])
  })
})
