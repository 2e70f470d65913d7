import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import pg from 'pg'
import { type Postgres, startPostgres } from '../../stack/postgres.ts'

describe('stack/postgres', () => {
  let dir: string
  let postgres: Postgres | undefined

  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'clearbatch-postgres-'))
  })

  afterEach(async () => {
    await postgres?.stop()
    await rm(dir, { recursive: true, force: true })
  })

  it('when it restarts, it keeps its data, and it runs crash-safe', async () => {
    postgres = await startPostgres({ dir })
    await query(postgres, 'create table kept as select 7 as n')
    await postgres.stop()

    postgres = await startPostgres({ dir })
    expect(await query(postgres, 'select n from kept')).to.deep.equal([{ n: 7 }])
    expect(await query(postgres, 'show fsync')).to.deep.equal([{ fsync: 'on' }])
    expect(await query(postgres, 'show synchronous_commit')).to.deep.equal([{ synchronous_commit: 'on' }])
  })

  it('when it is temporary, it deletes its folder at the end', async () => {
    postgres = await startPostgres({ dir, temporary: true })
    expect(await query(postgres, 'show fsync')).to.deep.equal([{ fsync: 'off' }])
    await postgres.stop()
    expect(existsSync(dir)).to.equal(false)
  })
})

async function query({ url }: Postgres, sql: string): Promise<unknown[]> {
  const client = new pg.Client(url)
  await client.connect()
  try {
    return (await client.query(sql)).rows
  } finally {
    await client.end()
  }
}
