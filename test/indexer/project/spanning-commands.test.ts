/** The `command_spanned` row of a command over several shards is projected after the rows of those shards. */
import { expect } from 'chai'
import fc from 'fast-check'
import { after, before, describe, it } from 'mocha'
import { ACCOUNTS_SHARD, type JournalRow, marketShard } from '../../../domain/journal/journal-row.ts'
import type { Millis } from '../../../domain/units.ts'
import { projectAll, projectChunk, registerShards } from '../../../indexer/project/project-shard.ts'
import { ShardLoops } from '../../../indexer/project/shard-loops.ts'
import { freshDatabase, type TestDatabase } from '../support/database.ts'
import { appendToJournal, clearJournal } from '../support/read-model.ts'

const killPoint = () => {}
const MARKETS = [1, 2] as const

/** A row that changes no read table. */
const filler = (at: number): JournalRow => ({ kind: 'part_confirmed', batch_id: 1, part: 1, block: 1, at })
const spanned = (shards: Record<string, number>): JournalRow => ({
  kind: 'command_spanned',
  user_id: 1,
  shards,
  at: 1,
})

describe('a command over several shards', () => {
  let test: TestDatabase
  before(async () => {
    test = await freshDatabase()
  })
  after(() => test.close())

  const seqs = async (): Promise<Map<string, number>> => {
    const rows = await test.db.selectFrom('read.projection').select(['shard', 'seq']).execute()
    return new Map(rows.map(({ shard, seq }) => [shard, seq]))
  }

  async function write(accounts: readonly JournalRow[], heads: readonly number[]): Promise<string[]> {
    await clearJournal(test.db)
    await appendToJournal(test.db, ACCOUNTS_SHARD, accounts)
    for (const [at, marketId] of MARKETS.entries()) {
      const rows = Array.from({ length: heads[at] ?? 0 }, (_, row) => filler(row))
      await appendToJournal(test.db, marketShard(marketId), rows)
    }
    return registerShards(test.db)
  }

  /** The sequence in each market's journal that each command waits for. */
  const anyNeeds = fc.array(fc.tuple(fc.nat(12), fc.nat(12)), { minLength: 1, maxLength: 8 })

  it('when shards are projected in any order, its row is projected after all rows that it names', async () => {
    await fc.assert(
      fc.asyncProperty(anyNeeds, fc.array(fc.nat(100), { maxLength: 40 }), async (needs, turns) => {
        const rows = needs.map(([one, two]) => spanned({ m1: one, m2: two }))
        const shards = await write(rows, [12, 12])
        for (const turn of turns) {
          await projectChunk(test.db, shards[turn % shards.length] as string, {
            limit: 1 + (turn % 5),
            killPoint,
          })
          const at = await seqs()
          for (const [one, two] of needs.slice(0, at.get(ACCOUNTS_SHARD) ?? 0)) {
            expect([one <= (at.get('m1') ?? 0), two <= (at.get('m2') ?? 0)]).to.deep.equal([true, true])
          }
        }
        await projectAll(test.db, { limit: 3, killPoint })
        expect(await seqs()).to.deep.equal(
          new Map([
            [ACCOUNTS_SHARD, rows.length],
            ['m1', 12],
            ['m2', 12],
          ]),
        )
      }),
      { numRuns: 15 },
    )
  }).timeout(60_000)

  it('when a named shard is behind, its row reports that it waits', async () => {
    await write([spanned({ m1: 1, m2: 2 })], [1, 2])
    expect(await projectChunk(test.db, ACCOUNTS_SHARD, { limit: 5, killPoint })).to.deep.include({
      rows: 0,
      isWaiting: true,
    })
    await projectChunk(test.db, 'm1', { limit: 5, killPoint })
    expect(await projectChunk(test.db, ACCOUNTS_SHARD, { limit: 5, killPoint })).to.deep.include({
      rows: 0,
      isWaiting: true,
    })
    await projectChunk(test.db, 'm2', { limit: 5, killPoint })
    expect(await projectChunk(test.db, ACCOUNTS_SHARD, { limit: 5, killPoint })).to.deep.include({
      rows: 1,
      isWaiting: false,
    })
  })

  it('when the last named shard catches up, its row is projected without a notification or a poll', async () => {
    await write([spanned({ m1: 3, m2: 1 })], [2, 1])
    const clock = { now: () => Date.now() as Millis }
    const logger = { info() {}, warn() {}, error() {} }
    const metrics = { projected() {}, failed() {} }
    const loops = new ShardLoops(
      { db: test.db, clock, logger, metrics },
      { limit: 10, pollMs: 3_600_000, killPoint },
    )
    loops.start()
    const until = async (shard: string, seq: number): Promise<void> => {
      for (let tries = 0; (await seqs()).get(shard) !== seq; tries++) {
        if (tries > 200) throw new Error(`${shard} is not projected up to ${seq}`)
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
    }
    await until('m1', 2)
    await until('m2', 1)
    expect((await seqs()).get(ACCOUNTS_SHARD)).to.equal(0)
    await appendToJournal(test.db, 'm1', [filler(3)])
    loops.wake('m1')
    await until(ACCOUNTS_SHARD, 1)
    await loops.stop()
  })
})
