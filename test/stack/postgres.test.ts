import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import pg from 'pg'
import { isRunning } from '../../stack/lock.ts'
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

  it('when a server of a killed stack still runs, it is ended and the next one has its data', async () => {
    const former = await startPostgres({ dir })
    await query(former, 'create table kept as select 7 as n')
    // Its guard, which would end it, is killed first, as by the kernel when memory is short.
    const postmaster = Number.parseInt(readFileSync(join(dir, 'data', 'postmaster.pid'), 'utf8'), 10)
    process.kill(former.group, 'SIGKILL')
    await former.exited
    expect(isRunning(postmaster, 'postgres')).to.equal(true)
    postgres = await startPostgres({ dir })
    expect(isRunning(postmaster, 'postgres')).to.equal(false)
    expect(await query(postgres, 'select n from kept')).to.deep.equal([{ n: 7 }])
  })

  it('when the file of a killed server names another process, it starts', async () => {
    await (await startPostgres({ dir })).stop()
    writeFileSync(join(dir, 'data', 'postmaster.pid'), `${process.pid}\n${join(dir, 'data')}\n`)
    postgres = await startPostgres({ dir })
    expect(await query(postgres, 'select 1 as n')).to.deep.equal([{ n: 1 }])
  })

  it('when a start was killed while it created the cluster, the next one creates it', async () => {
    for (const folder of ['data', 'data.new']) {
      mkdirSync(join(dir, folder))
      writeFileSync(join(dir, folder, 'half'), '')
    }
    postgres = await startPostgres({ dir })
    expect(await query(postgres, 'select 1 as n')).to.deep.equal([{ n: 1 }])
  })

  it('when a cluster has lost its version, it is refused in one line that names --fresh, and its data stays', async () => {
    await (await startPostgres({ dir })).stop()
    rmSync(join(dir, 'data', 'PG_VERSION'))
    const refusal = await startPostgres({ dir }).then(
      () => null,
      (error: Error) => error,
    )
    expect(refusal?.message).to.include('--fresh').and.not.include('\n')
    expect(existsSync(join(dir, 'data', 'base'))).to.equal(true)
  })

  it('when the cluster is damaged, it is refused in one line with the reason of the server', async () => {
    await (await startPostgres({ dir })).stop()
    writeFileSync(join(dir, 'data', 'global', 'pg_control'), '')
    const refusal = await startPostgres({ dir }).then(
      () => null,
      (error: Error) => error,
    )
    expect(refusal?.message)
      .to.match(/PANIC: .*pg_control/)
      .and.to.include('--fresh')
      .and.not.include('\n')
  })

  it('when the password is missing, it is refused in one line that names --fresh', async () => {
    await (await startPostgres({ dir })).stop()
    rmSync(join(dir, 'password'))
    const refusal = await startPostgres({ dir }).then(
      () => null,
      (error: Error) => error,
    )
    expect(refusal?.message).to.include('--fresh').and.not.include('\n')
  })

  for (const [content, text] of [
    ['is empty', ''],
    ['is truncated', '0123456789abcdef'],
    ['is of another cluster', '0123456789abcdef0123456789abcdef'],
  ] as const)
    it(`when the password ${content}, it is refused in one line that names the file`, async () => {
      await (await startPostgres({ dir })).stop()
      writeFileSync(join(dir, 'password'), text)
      const refusal = await startPostgres({ dir }).then(
        () => null,
        (error: Error) => error,
      )
      expect(refusal?.message)
        .to.include(join(dir, 'password'))
        .and.to.include('--fresh')
        .and.not.include('\n')
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
