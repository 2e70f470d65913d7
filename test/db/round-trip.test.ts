/** Statements that are sent in one round trip. */
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import type pg from 'pg'
import { createPool } from '../../db/client.ts'
import { runTogether, type Statement } from '../../db/round-trip.ts'
import { freshDatabase, type TestDatabase } from '../indexer/support/database.ts'

const statement = (name: string, text: string, ...values: Statement['values']): Statement => ({
  name,
  text,
  values,
})

const PAIRS = statement('pairs', 'select * from pairs order by id')
const insert = (id: number, value: string | null): Statement =>
  statement('insert', 'insert into pairs values ($1, $2)', id, value)

describe('statements in one round trip', () => {
  let test: TestDatabase
  let pool: pg.Pool
  let client: pg.PoolClient
  before(async () => {
    test = await freshDatabase()
    pool = createPool({ url: test.url, connections: 1, name: 'round trip', idleInTransactionMs: 0 })
    client = await pool.connect()
    await client.query('create table pairs (id bigint primary key, value text)')
  })
  after(async () => {
    client.release()
    await pool.end()
    await test.close()
  })

  it('when statements are sent together, it returns the rows of each, and each sees the effects of those before it', async () => {
    for (const id of [1, 2, 3]) {
      const { rows, error } = await runTogether(client, [insert(id, `value ${id}`), PAIRS])
      expect(error).to.equal(null)
      expect(rows[0]).to.deep.equal([])
      expect(rows[1]?.at(-1)).to.deep.equal({ id, value: `value ${id}` })
    }
  })

  it('when parameters are lists, texts with quotes, bytes and null, the server gets the same values', async () => {
    const bytes = Buffer.from('00ff5c22', 'hex')
    const texts = ['a "quote"', 'back\\slash', 'comma, {brace}', '', 'null', null]
    const { rows, error } = await runTogether(client, [
      statement(
        'echo',
        'select $1::text[] as texts, $2::bytea[] as bytes, $3::bigint[] as numbers, $4::bytea as one, $5::text as text, $6::numeric as wei',
        texts,
        [bytes, null],
        [1, -2, null],
        bytes,
        null,
        10n ** 30n,
      ),
    ])
    expect(error).to.equal(null)
    expect(rows[0]).to.deep.equal([
      { texts, bytes: [bytes, null], numbers: ['1', '-2', null], one: bytes, text: null, wei: 10n ** 30n },
    ])
  })

  it('when a statement fails, those behind it are not executed and the result has the rows of those before it', async () => {
    const commit = statement('commit', 'commit')
    const sent = [statement('begin', 'begin'), insert(4, 'four'), insert(1, 'again'), commit]
    const { rows, error } = await runTogether(client, sent)
    expect(rows).to.have.length(2)
    expect(error).to.include({ code: '23505' })
    await client.query('rollback')
    expect((await runTogether(client, [PAIRS])).rows[0]).to.have.length(3)
  })

  it('when a statement cannot be prepared, it fails each time and the connection stays usable', async () => {
    const wrong = statement('wrong', 'select nothing from pairs')
    for (let time = 0; time < 2; time++) {
      const { rows, error } = await runTogether(client, [PAIRS, wrong, PAIRS])
      expect(rows).to.have.length(1)
      expect(error).to.include({ code: '42703' })
    }
  })

  it('when a table gets a column, its statement fails at most once and then returns the column', async () => {
    await client.query('alter table pairs add column more integer default 7')
    await runTogether(client, [PAIRS])
    const { rows } = await runTogether(client, [PAIRS])
    expect(rows[0]?.[0]).to.deep.equal({ id: 1, value: 'value 1', more: 7 })
  })

  it('when a value cannot be represented, the result has the error and the connection stays usable', async () => {
    const large = statement('large', 'select 9007199254740993::bigint as value')
    const { error } = await runTogether(client, [large, PAIRS])
    expect(error?.message).to.contain('9007199254740993')
    expect((await runTogether(client, [PAIRS])).error).to.equal(null)
  })

  it('when the connection breaks, the result has the error', async () => {
    const other = createPool({ url: test.url, connections: 1, name: 'broken' })
    const broken = await other.connect()
    const end = statement('end', 'select pg_terminate_backend(pg_backend_pid())')
    const { rows, error } = await runTogether(broken, [PAIRS, end, PAIRS])
    expect(rows).to.have.length(1)
    expect(error).to.include({ code: '57P01' })
    broken.release(true)
    await other.end()
  })
})
