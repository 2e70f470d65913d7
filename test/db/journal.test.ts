/** The journal: gapless, in commit order, notified after the commit. */
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import pg from 'pg'
import { lockShards, readRows } from '../../db/journal.ts'
import { loadMarkets } from '../../db/markets.ts'
import { findUsers } from '../../db/users.ts'
import type { JournalRow } from '../../domain/journal/journal-row.ts'
import { fromStoredSpec, toStoredSpec } from '../../domain/market/stored-spec.ts'
import type { Address } from '../../domain/units.ts'
import { freshDatabase, type TestDatabase } from '../indexer/support/database.ts'
import { binary, perpetual } from '../support/markets.ts'
import { lockAccounts } from '../support/rows/accounts.ts'
import { appendRows, createShard, lockShard } from '../support/rows/journal.ts'
import { listMarket } from '../support/rows/markets.ts'
import { createUsers } from '../support/rows/users.ts'

const price = (at: number): JournalRow => ({
  kind: 'prices_updated',
  ...{ oracle_price: '1', oracle_at: 1, mark_price: '1', at },
})

describe('the journal', () => {
  let test: TestDatabase
  before(async () => {
    test = await freshDatabase()
    for (const shard of ['accounts', 'm1', 'm2', 'm10']) await createShard(test.db, shard)
  })
  after(() => test.close())

  const append = (shard: string, rows: readonly JournalRow[]): Promise<number> =>
    test.db.transaction().execute(async (tx) => appendRows(tx, await lockShard(tx, shard), rows))

  it('when several writers append at once, every row gets the next sequence, in the order of commits', async () => {
    const writers = Array.from({ length: 12 }, (_, writer) => append('m1', [price(writer), price(writer)]))
    const heads = await Promise.all(writers)
    expect([...heads].sort((a, b) => a - b)).to.deep.equal(heads.map((_, at) => 2 * (at + 1)))
    const rows = await readRows(test.db, 'm1', 0, 100)
    expect(rows.map(({ seq }) => seq)).to.deep.equal(Array.from({ length: 24 }, (_, at) => at + 1))
    for (const [writer, head] of heads.entries()) {
      expect(rows.filter(({ row }) => 'at' in row && row.at === writer).map(({ seq }) => seq)).to.deep.equal([
        head - 1,
        head,
      ])
    }
  })

  it('when a transaction fails, its rows leave no gap', async () => {
    const before = await append('m2', [price(1)])
    await test.db
      .transaction()
      .execute(async (tx) => {
        await appendRows(tx, await lockShard(tx, 'm2'), [price(2)])
        throw new Error('no')
      })
      .catch(() => {})
    expect(await append('m2', [price(3)])).to.equal(before + 1)
  })

  it('when a transaction commits, listeners are notified of the shard and its head, and not before', async () => {
    const listener = new pg.Client(test.url)
    await listener.connect()
    await listener.query('listen journal')
    const heard: string[] = []
    listener.on('notification', ({ payload }) => heard.push(payload ?? ''))
    let head = 0
    await test.db.transaction().execute(async (tx) => {
      head = await appendRows(tx, await lockShard(tx, 'm10'), [price(1), price(2)])
      await listener.query('select 1')
      expect(heard).to.deep.equal([])
    })
    await listener.query('select 1')
    expect(heard).to.deep.equal([`m10:${head}`])
    await listener.end()
  })

  it('when there are no rows to append, the head stays', async () => {
    expect(await append('m10', [])).to.equal((await append('m10', [])) as number)
  })

  it('when shards are named in any order, they are locked in ascending order', async () => {
    const both = (shards: readonly string[]) =>
      test.db.transaction().execute(async (tx) => {
        await lockShards(tx, shards)
        await new Promise((resolve) => setTimeout(resolve, 5))
      })
    await Promise.all(
      Array.from({ length: 10 }, (_, at) =>
        both(at % 2 ? ['m2', 'accounts', 'm10'] : ['m10', 'm2', 'accounts', 'm2']),
      ),
    )
  })

  it('when the shard does not exist, locking it fails', async () => {
    const failure = await append('m99', [price(1)]).catch((error: Error) => error)
    expect(failure).to.be.instanceOf(Error)
  })

  it('when the same new addresses are created twice, each user exists once, with an account', async () => {
    const addresses = ['0xaa', '0xbb', '0xaa'] as string[] as Address[]
    const made = await test.db.transaction().execute((tx) => createUsers(tx, addresses, 7))
    const again = await test.db.transaction().execute((tx) => createUsers(tx, addresses, 8))
    expect(made.rows.map((row) => row.kind === 'user_created' && row.address)).to.deep.equal(['0xaa', '0xbb'])
    expect(again.rows).to.deep.equal([])
    expect([...again.users]).to.deep.equal([...(await findUsers(test.db, addresses))])
    const ids = [...made.users.values()].reverse()
    const locked = await test.db.transaction().execute((tx) => lockAccounts(tx, ids))
    expect(locked.map(({ user_id }) => user_id)).to.deep.equal([...ids].sort((a, b) => a - b))
  })

  it('when a market is listed twice, it exists once and is read back unchanged', async () => {
    await listMarket(test.db, perpetual)
    await listMarket(test.db, perpetual)
    expect(await loadMarkets(test.db)).to.deep.equal([perpetual])
    const rows = await readRows(test.db, 'm1', 0, 100)
    expect(rows.filter(({ row }) => row.kind === 'market_listed')).to.have.length(1)
    expect(fromStoredSpec(JSON.parse(JSON.stringify(toStoredSpec(binary))))).to.deep.equal(binary)
  })
})
