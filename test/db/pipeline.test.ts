import { expect } from 'chai'
import { sql } from 'kysely'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { createDb, createPool, type Db } from '../../db/client.ts'
import { pipelined, together } from '../../db/pipeline.ts'
import { marketShard } from '../../domain/journal/journal-row.ts'
import { MarketFixture } from '../keeper/support/market-fixture.ts'
import { perpetual } from '../support/markets.ts'
import { appendRows, lockShard } from '../support/rows/journal.ts'

const SHARD = marketShard(perpetual.marketId)
const ROW = {
  ...{ kind: 'prices_updated' as const, oracle_price: '1', oracle_at: 1, mark_price: '1', at: 1 },
}

describe('statements of a transaction that are sent together', () => {
  let fixture: MarketFixture
  let db: Db

  beforeEach(async () => {
    fixture = await MarketFixture.open(perpetual)
    db = createDb(
      createPool({ url: fixture.url, connections: 2, name: 'pipeline test', idleInTransactionMs: 0 }),
    )
  })

  afterEach(async () => {
    await db.destroy()
    await fixture.close()
  })

  const headOf = async (tx: Db): Promise<number> =>
    (await tx.selectFrom('shards').select('head').where('shard', '=', SHARD).executeTakeFirstOrThrow()).head
  const insert = (tx: Db, name: string) =>
    tx.insertInto('leases').values({ name, owner: 'one', token: 1, expires_at: 0 }).execute()
  const names = async () => (await db.selectFrom('leases').select('name').execute()).map(({ name }) => name)

  it('when the first one waits for a lock, the second one sees what the transaction before has committed', async () => {
    let seen: Promise<readonly [{ readonly head: number }, number]> | undefined
    await db.transaction().execute(async (tx) => {
      const head = await lockShard(tx, SHARD)
      seen = db
        .transaction()
        .execute((opened) => pipelined(opened, (other) => together([lockShard(other, SHARD), headOf(other)])))
      await new Promise((resolve) => setTimeout(resolve, 100))
      await appendRows(tx, head, [ROW])
    })
    const [locked, head] = (await seen) as readonly [{ readonly head: number }, number]
    expect([locked.head, head]).to.deep.equal([2, 2])
  })

  it('when one fails, its error is thrown, none of them takes effect, and the connection serves others', async () => {
    const failing = db.transaction().execute((opened) =>
      pipelined(opened, (tx) =>
        together([
          insert(tx, 'first'),
          sql`select 1 / 0`.execute(tx),
          // Starts another statement after its first one.
          insert(tx, 'second').catch(() => insert(tx, 'third')),
        ]),
      ),
    )
    expect(await failing.catch((error: Error) => error.message)).to.equal('division by zero')
    expect(await names()).to.deep.equal([])
    await db.transaction().execute((opened) => pipelined(opened, (tx) => together([insert(tx, 'later')])))
    expect(await names()).to.deep.equal(['later'])
  })
})
