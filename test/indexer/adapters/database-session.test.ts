/** The database session receives notifications, and reconnects after its connection is lost. */
import { expect } from 'chai'
import { sql } from 'kysely'
import { after, afterEach, before, describe, it } from 'mocha'
import { DatabaseSession } from '../../../indexer/adapters/database-session.ts'
import { freshDatabase, type TestDatabase } from '../support/database.ts'

describe('DatabaseSession', () => {
  let test: TestDatabase
  const sessions: DatabaseSession[] = []
  before(async () => {
    test = await freshDatabase()
  })
  afterEach(async () => {
    for (const session of sessions.splice(0)) await session.stop()
  })
  after(() => test.close())

  /** An open session with the notifications that it has received. */
  async function open(name: string) {
    const received: string[] = []
    let connections = Promise.withResolvers<void>()
    let notified = Promise.withResolvers<void>()
    const session = new DatabaseSession({
      ...{ url: test.url, name, channels: ['chain'], onError() {} },
      onNotify(channel, payload) {
        received.push(`${channel} ${payload}`)
        notified.resolve()
      },
      onConnect: () => connections.resolve(),
    })
    sessions.push(session)
    session.start()
    await connections.promise
    return {
      session,
      received,
      async reconnected(): Promise<void> {
        connections = Promise.withResolvers()
        await connections.promise
      },
      async receives(payload: string): Promise<void> {
        notified = Promise.withResolvers()
        await sql`select pg_notify('chain', ${payload})`.execute(test.db)
        await notified.promise
      },
    }
  }

  const terminate = (name: string) =>
    sql`select pg_terminate_backend(pid) from pg_stat_activity where application_name = ${name}`.execute(
      test.db,
    )

  it('when a notification is sent, it receives channel and payload', async () => {
    const { received, receives } = await open('listener')
    await receives('7')
    expect(received).to.deep.equal(['chain 7'])
  })

  it('when its connection is terminated, it reconnects, reports it and receives notifications again', async () => {
    const session = await open('terminated')
    const again = session.reconnected()
    await terminate('terminated')
    await again
    await session.receives('after')
    expect(session.received).to.deep.equal(['chain after'])
  })
})
