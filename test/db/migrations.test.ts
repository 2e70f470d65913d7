/** Migrations go up, down and up again, and leave the same schema behind. */
import { expect } from 'chai'
import { sql } from 'kysely'
import { NO_MIGRATIONS } from 'kysely/migration'
import { after, before, describe, it } from 'mocha'
import { createMigrator, MIGRATIONS, migrate } from '../../db/migrator.ts'
import { connect, type TestDatabase } from '../indexer/support/database.ts'
import { emptyDatabase } from '../support/postgres.ts'

describe('migrations', () => {
  let test: TestDatabase
  before(async () => {
    test = connect(await emptyDatabase())
  })
  after(() => test.close())

  /** Columns, constraints and indexes of every table except the migrator's own. */
  async function schema(): Promise<string[]> {
    const { rows } = await sql<{ line: string }>`
      select concat_ws(' ', table_schema, table_name, ordinal_position, column_name, data_type, is_nullable, column_default) as line
      from information_schema.columns
      where table_schema in ('public', 'read') and table_name not like 'kysely%'
      union all
      select concat_ws(' ', conrelid::regclass, conname, pg_get_constraintdef(oid)) from pg_constraint
      where connamespace in ('public'::regnamespace, to_regnamespace('read')) and conrelid::regclass::text not like 'kysely%'
      union all
      select indexdef from pg_indexes where schemaname in ('public', 'read') and tablename not like 'kysely%'
      order by 1
    `.execute(test.db)
    return rows.map(({ line }) => line)
  }

  const tables = async (): Promise<string[]> => {
    const found = await test.db.introspection.getTables()
    return found.map(({ schema: of, name }) => `${of}.${name}`)
  }

  it('when all migrations are applied, taken back and applied again, the schema is the same both times', async () => {
    await migrate(test.db)
    const first = await schema()
    expect(first.length).to.be.greaterThan(100)
    const { error } = await createMigrator(test.db).migrateTo(NO_MIGRATIONS)
    expect(error).to.equal(undefined)
    expect(await schema()).to.deep.equal([])
    await migrate(test.db)
    expect(await schema()).to.deep.equal(first)
  })

  it('when each migration is taken back alone, its down removes what its up created and nothing else', async () => {
    const names = Object.keys(MIGRATIONS)
    await createMigrator(test.db).migrateTo(NO_MIGRATIONS)
    const before = [await tables()]
    for (const name of names) {
      await createMigrator(test.db).migrateTo(name)
      before.push(await tables())
    }
    for (let at = names.length - 1; at >= 0; at--) {
      const { error } = await createMigrator(test.db).migrateDown()
      expect(error).to.equal(undefined)
      expect(await tables()).to.deep.equal(before[at])
    }
  })

  it('when several processes migrate at once, each migration is applied once', async () => {
    const others = [connect(test.url), connect(test.url)]
    await Promise.all([test, ...others].map(({ db }) => migrate(db)))
    const applied = await createMigrator(test.db).getMigrations()
    expect(applied.every(({ executedAt }) => executedAt !== undefined)).to.equal(true)
    for (const other of others) await other.close()
  })
})
