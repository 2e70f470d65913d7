/** When an api knows that an order which the tables lack was not placed. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { sql } from 'kysely'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { createEarlierAttempts } from '../../../api/commands/earlier-attempts.ts'
import { createTableProgress } from '../../../api/commands/table-progress.ts'
import { ApiError } from '../../../api/errors.ts'
import { createDb, createPool, type Db } from '../../../db/client.ts'
import { freshDatabase, loginOf } from '../../support/postgres.ts'

describe('what an api says of an order that the tables lack', () => {
  let owner: Db
  let db: Db

  beforeEach(async () => {
    const url = await freshDatabase()
    owner = createDb(createPool({ url, connections: 1, name: 'test' }))
    db = createDb(createPool({ url: await loginOf(url, 'api'), connections: 2, name: 'test api' }))
    await sql`
      insert into engine_groups (number, token, version, rows, before, digest) values (1, 0, 1, '[]', '', '')
    `.execute(owner)
  })
  afterEach(async () => {
    await owner.destroy()
    await db.destroy()
  })

  /** The outcome of a placement that is refused before the engine reads it. */
  const refused = (settled: () => Promise<boolean>): Promise<unknown> =>
    createEarlierAttempts({ warn() {} }, settled)
      .executing({ key: 'place', find: async () => ({ outcome: 'not_placed' }) }, async () => {
        throw new ApiError('OVERLOADED').with('not_placed')
      })
      .catch(({ outcome }: ApiError) => outcome)

  it('when the engine has stored a group that the tables never get, they have not caught up', async () => {
    expect(await createTableProgress(db).caughtUp()).to.equal(false)
  })

  it('when the tables get the group meanwhile, they have caught up', async () => {
    const caughtUp = createTableProgress(db).caughtUp()
    await sql`update engine_tables set written = 1`.execute(owner)
    expect(await caughtUp).to.equal(true)
  })

  it('when many calls wait for a group at different times, they share the reads', async () => {
    let reads = 0
    const progress = createTableProgress(
      db.withPlugin({
        transformQuery({ node }) {
          reads++
          return node
        },
        transformResult: async ({ result }) => result,
      }),
    )
    const calls: Promise<boolean>[] = []
    for (let at = 0; at < 20; at++) {
      calls.push(progress.caughtUp())
      await sleep(5)
    }
    await sql`update engine_tables set written = 1`.execute(owner)
    expect(await Promise.all(calls)).to.deep.equal(calls.map(() => true))
    expect(reads).to.be.below(calls.length)
  })

  it('when an order is not in the tables, it was not placed only if earlier commands are settled', async () => {
    expect(await refused(async () => false)).to.equal('unknown')
    expect(await refused(async () => true)).to.equal('not_placed')
  })
})
