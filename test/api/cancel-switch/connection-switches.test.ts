import { expect } from 'chai'
import type { KyselyPlugin } from 'kysely'
import { after, afterEach, before, beforeEach, describe, it } from 'mocha'
import {
  type ConnectionSwitches,
  createConnectionSwitches,
} from '../../../api/cancel-switch/connection-switches.ts'
import { createSwitchTables } from '../../../api/cancel-switch/switch-store.ts'
import { createDb, createPool, type Db } from '../../../db/client.ts'
import { createShard } from '../../../db/journal.ts'
import { ACCOUNTS_SHARD } from '../../../domain/journal/journal-row.ts'
import type { Millis } from '../../../domain/units.ts'
import { freshDatabase } from '../../support/postgres.ts'

type Node = Parameters<KyselyPlugin['transformQuery']>[0]['node']

const writesSwitches = (node: Node): boolean =>
  node.kind === 'DeleteQueryNode' ||
  (node.kind === 'RawNode' && node.sqlFragments.join('').includes('insert into connection_switches'))

/** Counts statements that write switches. The next statement waits for `afterEach`. */
class Counter implements KyselyPlugin {
  statements = 0
  afterEach: () => Promise<void> = async () => {}
  transformQuery({ node }: Parameters<KyselyPlugin['transformQuery']>[0]) {
    if (writesSwitches(node)) this.statements++
    return node
  }
  async transformResult({ result }: Parameters<KyselyPlugin['transformResult']>[0]) {
    await this.afterEach()
    return result
  }
}

describe('switches of connections', () => {
  const clock = { value: 1_000_000, now: () => clock.value as Millis }
  let db: Db
  let counter: Counter
  let switches: ConnectionSwitches
  let alice: number
  let bob: number

  before(async () => {
    db = createDb(
      createPool({
        url: await freshDatabase(),
        connections: 4,
        name: 'switches test',
        idleInTransactionMs: 0,
      }),
    )
    const users = ['0xa', '0xb'].map((address) => ({ address, created_at: 1 }))
    const rows = await db.insertInto('users').values(users).returning('user_id').execute()
    await createShard(db, ACCOUNTS_SHARD)
    ;[alice, bob] = rows.map(({ user_id }) => user_id) as [number, number]
  })
  beforeEach(() => {
    counter = new Counter()
    switches = createConnectionSwitches(createSwitchTables(db.withPlugin(counter), clock), clock, {
      warn() {},
    })
  })
  afterEach(async () => {
    await switches.stop()
    await db.deleteFrom('connection_switches').execute()
  })
  after(() => db.destroy())

  const rowOf = (id: string) =>
    db.selectFrom('connection_switches').selectAll().where('connection_id', '=', id).executeTakeFirst()

  it('when an account sets the switches of hundreds of connections, the renewal of another waits for two statements', async () => {
    await switches.set('bob', bob, 5)
    const before = (await rowOf('bob'))?.fire_at as number
    const flood = Array.from({ length: 1_200 }, (_, at) =>
      switches.set(`alice ${at % 300}`, alice, 5 + (at % 7)),
    )
    clock.value += 1_300
    counter.statements = 0
    const renewedAfter = await new Promise<number>((resolve) => {
      counter.afterEach = async () => {
        if (((await rowOf('bob'))?.fire_at as number) > before) resolve(counter.statements)
      }
    })
    counter.afterEach = async () => {}
    expect(renewedAfter).to.be.at.most(2)
    expect(await Promise.all(flood)).to.have.length(1_200)
    expect(counter.statements).to.be.at.most(5)
    expect(await rowOf('alice 299')).to.include({ user_id: alice, timeout_seconds: 5 + (1_199 % 7) })
  })

  it('when a connection changes its switch several times at once, each change is answered and the last one counts', async () => {
    const changes = [switches.set('a', alice, 10), switches.set('a', alice, 0), switches.set('a', alice, 20)]
    const now = clock.value
    expect(await Promise.all(changes)).to.deep.equal([now + 10_000, null, now + 20_000])
    expect(await rowOf('a')).to.include({ timeout_seconds: 20, fire_at: now + 20_000 })
    expect(await Promise.all([switches.set('a', alice, 30), switches.set('a', alice, 0)])).to.deep.equal([
      now + 30_000,
      null,
    ])
    expect([await rowOf('a'), switches.isArmed('a')]).to.deep.equal([undefined, false])
  })

  it('when storing a request fails, only its connections get the error', async () => {
    const results = await Promise.allSettled([switches.set('a', -1, 10), switches.set('b', alice, 0)])
    expect(results.map(({ status }) => status)).to.deep.equal(['rejected', 'fulfilled'])
    expect(switches.isArmed('a')).to.equal(false)
  })
})
