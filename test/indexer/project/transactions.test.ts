/** Transactions of accounts: the projected rows equal a model that pays every position at every update, however they are projected. */
import { expect } from 'chai'
import fc from 'fast-check'
import { after, before, describe, it } from 'mocha'
import { transactionsOfUser } from '../../../api/transactions/query.ts'
import type { TransactionRow } from '../../../api/transactions/view.ts'
import { ACCOUNTS_SHARD, marketShard } from '../../../domain/journal/journal-row.ts'
import { projectAlone, projectChunk } from '../../../indexer/project/project-chunk.ts'
import { projectAll, projectShards, registerShards } from '../../../indexer/project/project-shards.ts'
import { rebuild } from '../../../indexer/project/rebuild.ts'
import { transactions } from '../../../indexer/project/transactions/projection.ts'
import { freshDatabase, type TestDatabase } from '../support/database.ts'
import {
  anyFundingHistory,
  type ExpectedTransaction,
  type FundingHistory,
  USERS,
} from '../support/funding-history.ts'
import { appendToJournal, clearJournal, dumpReadModel } from '../support/read-model.ts'

const killPoint = () => {}
const MARKET = 7
const options = { limit: 1_000, killPoint, projections: [transactions] }

describe('the transactions of accounts', function () {
  this.timeout(120_000)
  let test: TestDatabase
  before(async () => {
    test = await freshDatabase()
  })
  after(() => test.close())

  async function write({ accounts, market }: FundingHistory): Promise<void> {
    await clearJournal(test.db)
    await appendToJournal(test.db, ACCOUNTS_SHARD, accounts)
    await appendToJournal(test.db, marketShard(MARKET), market)
    await registerShards(test.db, [transactions])
  }

  const rows = () => test.db.selectFrom('read.account_transactions').selectAll().execute()

  it('when any history is projected in any chunks, the rows are those of the model', async () => {
    await fc.assert(
      fc.asyncProperty(
        anyFundingHistory,
        fc.array(fc.integer({ min: 1, max: 9 })),
        async (history, chunks) => {
          await write(history)
          for (const limit of chunks)
            await projectAlone(test.db, [marketShard(MARKET)], transactions, { limit, killPoint })
          await projectAll(test.db, options)
          const found = await rows()
          expect(lines(found.map(toExpected))).to.deep.equal(lines(history.expected()))
          const interest = await test.db.selectFrom('read.open_interest').select('steps').execute()
          const longs = [...history.sizes.values()].filter((size) => size > 0)
          expect(interest[0]?.steps ?? 0, 'open interest').to.equal(
            longs.reduce((sum, size) => sum + size, 0),
          )
          expect(new Set(found.map(({ id }) => id)).size).to.equal(found.length)
        },
      ),
      { numRuns: 25 },
    )
  })

  it('when any history is projected, recorded and accrued payments of all accounts sum to zero', async () => {
    await fc.assert(
      fc.asyncProperty(anyFundingHistory, async (history) => {
        fc.pre([...history.sizes.values()].reduce((sum, size) => sum + size, 0) === 0)
        await write(history)
        await projectAll(test.db, options)
        const recorded = (await rows()).reduce((sum, row) => sum + (row.funding_payment_delta ?? 0n), 0n)
        const accrued = [...history.accrued().values()].reduce((sum, each) => sum + each, 0n)
        expect(recorded + accrued).to.equal(0n)
      }),
      { numRuns: 25 },
    )
  })

  it('when an account reads its transactions page by page, it gets each row once, newest first', async () => {
    const anyFilter = fc.record({
      limit: fc.integer({ min: 1, max: 12 }),
      from: fc.constantFrom(null, null, 5_000, 20_700),
      to: fc.constantFrom(null, null, 15_000, 30_000),
      marketId: fc.constantFrom(undefined, undefined, MARKET, MARKET + 1),
      type: fc.constantFrom(
        undefined,
        undefined,
        ...(['funding_payment', 'deposit', 'liquidation', 'market_delisting_payout'] as const),
      ),
    })
    await fc.assert(
      fc.asyncProperty(anyFundingHistory, anyFilter, async (history, filter) => {
        await write(history)
        await projectAll(test.db, options)
        const all = await rows()
        for (const user of USERS) {
          const expected = all
            .filter(({ user_id }) => user_id === user)
            .filter(({ market_id }) => (filter.marketId ?? market_id) === market_id)
            .filter(({ type }) => (filter.type ?? type) === type)
            .filter(({ at }) => at >= (filter.from ?? 0) && at < (filter.to ?? Number.POSITIVE_INFINITY))
            .sort((a, b) => b.at - a.at || (a.id < b.id ? 1 : -1))
          const read: TransactionRow[] = []
          for (;;) {
            const page = await transactionsOfUser(test.db, user, { ...filter, after: read.at(-1) ?? null })
            if (page.length === 0) break
            read.push(...page)
          }
          expect(read).to.deep.equal(expected)
        }
      }),
      { numRuns: 30 },
    )
  })

  it('when the read model is rebuilt, the rows are the same', async () => {
    await fc.assert(
      fc.asyncProperty(
        anyFundingHistory,
        fc.array(fc.integer({ min: 1, max: 9 })),
        async (history, chunks) => {
          await write(history)
          for (const limit of chunks)
            await projectChunk(test.db, [marketShard(MARKET)], { ...options, limit })
          await projectShards(test.db, [marketShard(MARKET)], options)
          await projectShards(test.db, [ACCOUNTS_SHARD], options)
          const live = await dumpReadModel(test.db)
          await rebuild(test.db, options)
          expect(await dumpReadModel(test.db)).to.deep.equal(live)
        },
      ),
      { numRuns: 15 },
    )
  })
})

const toExpected = (row: {
  readonly user_id: number
  readonly type: ExpectedTransaction['type']
  readonly amount: bigint
  readonly available_margin_delta: bigint
  readonly funding_payment_delta: bigint | null
  readonly tx_hash: string
  readonly at: number
}): ExpectedTransaction => ({
  ...{ user_id: row.user_id, type: row.type, amount: row.amount, available: row.available_margin_delta },
  ...{ funding: row.funding_payment_delta, tx_hash: row.tx_hash, at: row.at },
})

const lines = (all: readonly ExpectedTransaction[]): string[] =>
  all.map((row) => Object.values(row).join(' ')).sort()
