/** The list of projections, the tables that readers know, and the tables of the database are the same. */
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { PROJECTED_TABLES } from '../../../db/read-schema.ts'
import { PROJECTIONS } from '../../../indexer/project/projections.ts'
import { freshDatabase, type TestDatabase } from '../support/database.ts'

/** The state of the projections, and the counter of event numbers, which a rebuild continues. */
const NOT_PROJECTED = ['read.places', 'read.arrivals', 'read.feed_state', 'read.feed_heads', 'read.feed']

describe('the list of projections', () => {
  let test: TestDatabase
  before(async () => {
    test = await freshDatabase()
  })
  after(() => test.close())

  it('when the schema read has a table, exactly one projection fills it', async () => {
    const found = await test.db.introspection.getTables()
    const tables = found.filter(({ schema, isView }) => schema === 'read' && !isView)
    const names = tables.map(({ schema, name }) => `${schema}.${name}`)
    const projected = PROJECTIONS.flatMap(({ tables }) => tables)
    expect([...projected, ...NOT_PROJECTED].sort()).to.deep.equal(names.sort())
  })

  it('when readers look up the projection of a table, they find the one that fills it', () => {
    expect(Object.fromEntries(PROJECTIONS.map(({ name, tables }) => [name, tables]))).to.deep.equal(
      PROJECTED_TABLES,
    )
  })

  it('when a projection is stored, its version is positive: 0 marks one that is to be filled', () => {
    for (const { name, version } of PROJECTIONS) expect(version, name).to.be.at.least(1)
  })
})
