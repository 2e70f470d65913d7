/** The session: hears, holds a lock alone, and comes back when its connection is cut. */
import { expect } from 'chai'
import { sql } from 'kysely'
import { after, afterEach, before, describe, it } from 'mocha'
import { DatabaseSession } from '../../../indexer/adapters/database-session.ts'
import { freshDatabase, type TestDatabase } from '../support/database.ts'

const LOCK = 'a lock'

describe('Session', () => {
  let test: TestDatabase
  const sessions: DatabaseSession[] = []
  before(async () => {
    test = await freshDatabase()
  })
  afterEach(async () => {
    for (const session of sessions.splice(0)) await session.stop()
  })
  after(() => test.close())

  /** What the session tells, one after another. */
  async function open(name: string) {
    const heard: string[] = []
    let connections = Promise.withResolvers<void>()
    let notified = Promise.withResolvers<void>()
    const session = new DatabaseSession({
      ...{ url: test.url, name, channels: ['chain'], onError() {} },
      onNotify(channel, payload) {
        heard.push(`${channel} ${payload}`)
        notified.resolve()
      },
      onConnect: () => connections.resolve(),
    })
    sessions.push(session)
    session.start()
    await connections.promise
    return {
      session,
      heard,
      async connectsAgain(): Promise<void> {
        connections = Promise.withResolvers()
        await connections.promise
      },
      async hears(payload: string): Promise<void> {
        notified = Promise.withResolvers()
        await sql`select pg_notify('chain', ${payload})`.execute(test.db)
        await notified.promise
      },
    }
  }

  const cut = (name: string) =>
    sql`select pg_terminate_backend(pid) from pg_stat_activity where application_name = ${name}`.execute(
      test.db,
    )

  it('given a notification, it hears channel and payload', async () => {
    const { heard, hears } = await open('ears')
    await hears('7')
    expect(heard).to.deep.equal(['chain 7'])
  })

  it('given two sessions, one holds the lock until it ends, then the other', async () => {
    const [first, second] = [await open('first'), await open('second')]
    expect(await first.session.holdsLock(LOCK)).to.equal(true)
    expect(await first.session.holdsLock(LOCK)).to.equal(true)
    expect(await second.session.holdsLock(LOCK)).to.equal(false)
    await first.session.stop()
    while (!(await second.session.holdsLock(LOCK))) await new Promise((resolve) => setTimeout(resolve, 10))
    expect(await first.session.holdsLock(LOCK)).to.equal(false)
  })

  it('given a cut connection, it has lost its lock, connects again, says so, and hears', async () => {
    const cuttable = await open('cuttable')
    expect(await cuttable.session.holdsLock(LOCK)).to.equal(true)
    const again = cuttable.connectsAgain()
    await cut('cuttable')
    await again
    const other = await open('other')
    expect(await other.session.holdsLock(LOCK)).to.equal(true)
    expect(await cuttable.session.holdsLock(LOCK)).to.equal(false)
    await cuttable.hears('after')
    expect(cuttable.heard).to.deep.equal(['chain after'])
  })
})
