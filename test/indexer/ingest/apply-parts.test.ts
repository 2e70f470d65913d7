/** Parts that one block settles together leave the state that they leave one by one, over random histories of several markets. */
import { expect } from 'chai'
import fc from 'fast-check'
import { sql } from 'kysely'
import { after, before, describe, it } from 'mocha'
import type { Tx } from '../../../db/client.ts'
import { createShard } from '../../../db/journal.ts'
import { listMarket } from '../../../db/markets.ts'
import type { ChainFact } from '../../../domain/chain/facts.ts'
import { ACCOUNTS_SHARD } from '../../../domain/journal/journal-row.ts'
import type { Address } from '../../../domain/units.ts'
import { applyFacts } from '../../../indexer/ingest/apply.ts'
import { type BlockFact, lockFacts, withPending } from '../../../indexer/ingest/fact-locks.ts'
import { planSteps } from '../../../indexer/ingest/plan-steps.ts'
import { UNREAD_CHAIN } from '../../keeper/support/mine-part.ts'
import { freshDatabase, type TestDatabase } from '../support/database.ts'
import { historyOf, MARKETS, prepare, type Step, steps, TIMESTAMP } from '../support/part-histories.ts'

interface Way {
  readonly perBlock: number
  /** Each block is applied step by step; the number puts the steps of a stage in some order. Null: it is applied at once. */
  readonly order: number | null
}

type Block = Parameters<typeof applyFacts>[1]

async function applyAtOnce(tx: Tx, block: Block, facts: readonly BlockFact[], blockFacts = facts) {
  await applyFacts(tx, block, facts, { chain: UNREAD_CHAIN, locked: await lockFacts(tx, facts), blockFacts })
}

async function applyStepwise(tx: Tx, block: Block, facts: readonly BlockFact[], order: number) {
  const steps = planSteps(facts, await withPending(tx, facts))
  const rank = (at: number): number => ((at + 1) * order) % 7_919
  const ordered = [...steps.entries()].sort(([a, one], [b, other]) =>
    one.stage === other.stage ? rank(a) - rank(b) : one.stage - other.stage,
  )
  for (const [, step] of ordered) await applyAtOnce(tx, block, step.facts, facts)
}

async function apply(tx: Tx, facts: readonly ChainFact[], { perBlock, order }: Way): Promise<void> {
  for (let from = 0; from < facts.length; from += perBlock) {
    const hash = `0x${from}`
    const block = { number: from + 1, hash, parentHash: '0x', timestamp: TIMESTAMP, transactions: [] }
    const logged = facts.slice(from, from + perBlock).map((fact, at): BlockFact => {
      const place = { block: block.number, blockHash: hash, logIndex: at, txHash: `0x${from + at}` }
      return { fact, log: { ...place, address: '0x' as Address, topics: [], data: '0x' } }
    })
    await (order === null ? applyAtOnce(tx, block, logged) : applyStepwise(tx, block, logged, order))
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
  async function outcomes(all: readonly Step[], ways: readonly Way[]): Promise<unknown[]> {
    const history = historyOf(all)
    const states: unknown[] = []
    const done = new Error('only the states are needed')
    const run = test.db.transaction().execute(async (tx) => {
      await prepare(tx, history)
      for (const way of ways) {
        await sql`savepoint prepared`.execute(tx)
        await apply(tx, history.facts, way)
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
        const [alone, together] = await outcomes(all, [
          { perBlock: 1, order: null },
          { perBlock, order: null },
        ])
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

  it('when the steps of a block are applied in any order of their stage, it leaves the state of the whole block', async () => {
    const way = fc.record({
      perBlock: fc.integer({ min: 2, max: 12 }),
      order: fc.integer({ min: 1, max: 7_918 }),
    })
    await fc.assert(
      fc.asyncProperty(steps, way, async (all, { perBlock, order }) => {
        const [whole, stepwise] = await outcomes(all, [
          { perBlock, order: null },
          { perBlock, order },
        ])
        expect(stepwise).to.deep.equal(whole)
      }),
      { numRuns: 40 },
    )
  })
})
