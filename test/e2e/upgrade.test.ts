/** What a start does with a data directory that it cannot continue: it refuses, names --fresh, and changes nothing. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { sql } from 'kysely'
import { after, before, describe, it } from 'mocha'
import { createDb, createPool, type Db } from '../../db/client.ts'
import { dataDirAt } from '../../stack/data-dir.ts'
import { startPostgres } from '../../stack/postgres.ts'
import { type Stack, startStack } from '../../stack/stack.ts'
import { nearOracle, trade, traderOn } from './support/stack.ts'

describe('a data directory of another version', function () {
  this.timeout(120_000)
  const dataDir = mkdtempSync(join(tmpdir(), 'clearbatch-upgrade-'))
  let running: Stack | undefined
  const start = async (): Promise<Stack> => {
    running = await startStack({ port: 0, dataDir, fresh: false, bots: false, backstop: false }, () => {})
    return running
  }
  const stop = async (): Promise<void> => {
    await running?.stop()
    running = undefined
  }
  const refusal = (): Promise<string> =>
    start().then(
      () => 'it started',
      (error: Error) => error.message,
    )

  before(async () => {
    const stack = await start()
    const [alice, bob] = [traderOn(stack, 0), traderOn(stack, 1)]
    await trade(alice, bob, { marketId: 1, price: await nearOracle(alice, 1), quantity: '0.01' })
  })
  after(async () => {
    await stop()
    rmSync(dataDir, { recursive: true, force: true })
  })

  async function withDatabase<Result>(work: (db: Db) => Promise<Result>): Promise<Result> {
    const postgres = await startPostgres({ dir: dataDirAt(dataDir).postgres })
    const db = createDb(createPool({ url: postgres.url, connections: 1, name: 'upgrade test' }))
    try {
      return await work(db)
    } finally {
      await db.destroy()
      await postgres.stop()
    }
  }

  const counts = async (db: Db): Promise<unknown[]> =>
    (
      await sql`
        select (select count(*) from journal) as rows, (select count(*) from orders) as orders, (select count(*) from kysely_migration) as migrations
      `.execute(db)
    ).rows

  it('when its contracts have other code, the next start refuses and names --fresh', async () => {
    const { provider, file } = running as Stack
    const bank = file.contracts.margin_bank
    const code = await provider.getCode(bank)
    await provider.send('anvil_setCode', [bank, code.replace(/^0x../, '0xfe')])
    await stop()
    expect(await refusal())
      .to.include(`MarginBank at ${bank} has code with hash 0x`)
      .and.to.include('--fresh')
  })

  it('when no engine has written its history, the next start refuses, names --fresh and changes nothing', async () => {
    const before = await withDatabase(async (db) => {
      await sql`truncate engine_groups`.execute(db)
      return counts(db)
    })
    expect(await refusal())
      .to.include('of a version without an engine')
      .and.to.include('--fresh')
    expect(await withDatabase(counts)).to.deep.equal(before)
  })
})
