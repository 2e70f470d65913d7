/** Parts that one block settles together leave the state that they leave one by one, over random histories of several markets. */
import { expect } from 'chai'
import fc from 'fast-check'
import { sql } from 'kysely'
import { after, before, describe, it } from 'mocha'
import type { Tx } from '../../../db/client.ts'
import { createShard } from '../../../db/journal.ts'
import { listMarket } from '../../../db/markets.ts'
import { ACCOUNTS_SHARD } from '../../../domain/journal/journal-row.ts'
import type { Address } from '../../../domain/units.ts'
import { applyFacts } from '../../../indexer/ingest/apply.ts'
import { type BlockFact, lockFacts } from '../../../indexer/ingest/fact-locks.ts'
import type { ChainFact } from '../../../indexer/ingest/facts.ts'
import { UNREAD_CHAIN } from '../../keeper/support/mine-part.ts'
import { freshDatabase, type TestDatabase } from '../support/database.ts'
import { historyOf, MARKETS, prepare, type Step, steps, TIMESTAMP } from '../support/part-histories.ts'

/** Applies the facts in blocks of this many. */
async function apply(tx: Tx, facts: readonly ChainFact[], perBlock: number): Promise<void> {
  for (let from = 0; from < facts.length; from += perBlock) {
    const hash = `0x${from}`
    const block = { number: from + 1, hash, parentHash: '0x', timestamp: TIMESTAMP, transactions: [] }
    const logged = facts.slice(from, from + perBlock).map((fact, at): BlockFact => {
      const place = { block: block.number, blockHash: hash, logIndex: at, txHash: `0x${from + at}` }
      return { fact, log: { ...place, address: '0x' as Address, topics: [], data: '0x' } }
    })
    await applyFacts(tx, block, logged, { chain: UNREAD_CHAIN, locked: await lockFacts(tx, logged) })
  }
}

const TABLES = [
  'accounts',
  'positions',
  'orders',
  'fills',
  'batches',
  'actions',
  'funding_states',
  'shards',
] as const

/** Without the place of each fact in its block, which differs between the two ways. */
async function stateOf(tx: Tx): Promise<unknown> {
  const tables: Record<string, unknown> = {}
  for (const table of TABLES) {
    const { rows } = await sql<{ row: unknown }>`
      select to_jsonb(t) as row from ${sql.table(table)} t order by to_jsonb(t)::text
    `.execute(tx)
    tables[table] = rows
  }
  const { rows } = await sql<{ row: unknown }>`
    select shard, seq, row::jsonb - 'block' - 'log_index' as row from journal order by shard, seq
  `.execute(tx)
  return { ...tables, rows }
}

describe('parts that are applied together', function () {
  this.timeout(60_000)
  let test: TestDatabase
  before(async () => {
    test = await freshDatabase()
    await createShard(test.db, ACCOUNTS_SHARD)
    for (const spec of MARKETS) await listMarket(test.db, spec)
  })
  after(() => test.close())

  /** The state after each way of applying the history. Nothing of it stays in the database. */
  async function outcomes(all: readonly Step[], ways: readonly number[]): Promise<unknown[]> {
    const history = historyOf(all)
    const states: unknown[] = []
    const done = new Error('only the states are needed')
    const run = test.db.transaction().execute(async (tx) => {
      await prepare(tx, history)
      for (const perBlock of ways) {
        await sql`savepoint prepared`.execute(tx)
        await apply(tx, history.facts, perBlock)
        states.push(await stateOf(tx))
        await sql`rollback to savepoint prepared`.execute(tx)
      }
      throw done
    })
    await run.catch((error: unknown) => {
      if (error !== done) throw error
    })
    return states
  }

  it('when parts of several markets share a block, it leaves the state of a block for each of them', async () => {
    const seen = { filled: false, closed: false, pending: false }
    await fc.assert(
      fc.asyncProperty(steps, fc.integer({ min: 2, max: 12 }), async (all, perBlock) => {
        const [alone, together] = await outcomes(all, [1, perBlock])
        expect(together).to.deep.equal(alone)
        const text = JSON.stringify(alone)
        seen.filled ||= text.includes('"status":"FILLED"')
        seen.closed ||= text.includes('"status_reason":"POSITION_CLOSED"')
        seen.pending ||= /"from_pending":"[1-9]/.test(text)
      }),
      { numRuns: 20 },
    )
    expect(seen, 'histories that show less prove less').to.deep.equal({
      filled: true,
      closed: true,
      pending: true,
    })
  })
})
