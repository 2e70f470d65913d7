/** Topics over generated histories with voids, rollbacks and rebuilds: a copy by snapshot and updates equals a fresh snapshot. */
import { setTimeout as sleep } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { expect } from 'chai'
import fc from 'fast-check'
import { sql } from 'kysely'
import { after, before, describe, it } from 'mocha'
import type { Caller } from '../../../api/auth/caller.ts'
import { createFeed, FEED_OPTIONS } from '../../../api/live/feed.ts'
import { SUMMARY_MS } from '../../../api/live/hub.ts'
import { PACE_MS } from '../../../api/live/live-topic.ts'
import { PARSED_MS } from '../../../api/live/parsed-rows.ts'
import { createCompleteness } from '../../../api/read-after/completeness.ts'
import { createNotifications } from '../../../db/notifications.ts'
import { ACCOUNTS_SHARD, marketShard } from '../../../domain/journal/journal-row.ts'
import { projectChunk } from '../../../indexer/project/project-chunk.ts'
import { projectShards, registerShards } from '../../../indexer/project/project-shards.ts'
import { rebuild } from '../../../indexer/project/rebuild.ts'
import { systemClock } from '../../../service/clock.ts'
import { createLogger } from '../../../service/logger.ts'
import { freshDatabase, type TestDatabase } from '../../indexer/support/database.ts'
import { anyHistory, type History } from '../../indexer/support/histories.ts'
import { appendToJournal, clearJournal } from '../../indexer/support/read-model.ts'
import { perpetual } from '../../support/markets.ts'
import { FeedClient, TopicCopy } from './support/feed-client.ts'

const killPoint = () => {}
/** Longer than the feeds rely on the state of a projection. */
const MARKED_MS = 1_500
/** Each wait takes 20 ms: on a busy machine, messages under way arrive late. */
const MOST_WAITS = 1_000
const TOPICS = [1, 2].flatMap((id) =>
  ['book', 'trades', 'auction'].map((channel) => `market.${id}.${channel}`),
)
const ALL = [...TOPICS, 'user', 'markets', 'market.1.candles.1w']
const specs = new Map(
  [1, 2].map((marketId) => [marketId, { ...perpetual, marketId, symbol: `M${marketId}` }]),
)
const callerOf = (userId: number): Caller => ({
  ...{
    userId,
    address: '0x' as Caller['address'],
    scope: 'read',
    credential: 'api_key',
    expiresAt: null,
    keyName: 'default',
    keyHash: null,
  },
})

/** The feed of one api process. */
async function startFeed(test: TestDatabase) {
  const notifications = createNotifications(test.url, 'test')
  const byId = async (marketId: number) => specs.get(marketId) as typeof perpetual
  const feed = createFeed(
    {
      ...{
        db: test.db,
        clock: systemClock,
        notifications,
        completeness: createCompleteness(test.db, systemClock),
      },
      ...{
        logger: createLogger('test', 'error'),
        markets: { byId } as never,
        calendars: { current: async () => ({}) } as never,
        config: { chainId: 1, oracleMaxAgeMs: 1, chainMaxAgeMs: 1 },
        random: () => 0,
      },
    },
    { ...FEED_OPTIONS, pollMs: 50 },
  )
  await notifications.start()
  return {
    ...feed,
    async stop() {
      await feed.follower.stop()
      await notifications.stop()
    },
  }
}
type Feed = Awaited<ReturnType<typeof startFeed>>

describe('the live feed', () => {
  let test: TestDatabase
  let feeds: readonly Feed[]
  before(async () => {
    test = await freshDatabase()
    feeds = [await startFeed(test), await startFeed(test)]
    for (const { follower } of feeds) follower.start()
  })
  after(async () => {
    for (const feed of feeds) await feed.stop()
    await test.close()
  })

  async function write(history: History): Promise<void> {
    await clearJournal(test.db)
    await appendToJournal(test.db, ACCOUNTS_SHARD, history.accounts)
    for (const { marketId, rows } of history.markets)
      await appendToJournal(test.db, marketShard(marketId), rows)
    await registerShards(test.db)
    await test.db.updateTable('read.places').set({ fill_to: null }).execute()
  }

  /** Until both processes have sent all rows. */
  async function settle(): Promise<void> {
    const state = await test.db.selectFrom('read.feed_state').selectAll().executeTakeFirstOrThrow()
    for (const { follower } of feeds) {
      while (follower.epoch !== state.epoch || follower.ring.head < state.seq) await sleep(5)
    }
    await sleep(Math.max(PACE_MS, SUMMARY_MS) + PARSED_MS)
    for (const { follower } of feeds) expectReleased(follower, state.first_seq)
  }

  /** The ring has the text of its rows alone. */
  function expectReleased({ ring }: Feed['follower'], from: number): void {
    let seq = from
    while (!ring.covers(seq)) seq++
    for (const head of ['book 1', 'book 2', 'user 1', 'user 2', 'markets'])
      expect(ring.after(seq, head).filter(({ isParsed }) => isParsed)).to.deep.equal([])
  }

  async function expectFresh(clients: readonly (readonly [FeedClient, number])[]): Promise<void> {
    for (const [client, userId] of clients) {
      const fresh = new FeedClient(callerOf(userId))
      await fresh.join((feeds[0] as Feed).hub, ALL)
      const isEqual = (topic: string) => {
        const [copy, expected] = [client.copies.get(topic), fresh.copies.get(topic)]
        return copy?.seq === expected?.seq && isDeepStrictEqual(copy?.state, expected?.state)
      }
      for (let waits = 0; waits < MOST_WAITS && !ALL.every(isEqual); waits++) await sleep(20)
      for (const topic of ALL) {
        const [copy, expected] = [client.copies.get(topic), fresh.copies.get(topic)]
        expect(copy?.state, `${topic} of account ${userId}`).to.deep.equal(expected?.state)
        expect(copy?.seq, topic).to.equal(expected?.seq)
      }
      fresh.leave()
    }
  }

  /** Clients of both processes, the last of which is killed and resumes, at the other process, at random moments. */
  async function follow(
    history: History,
    turns: readonly number[],
    rebuilds: boolean,
  ): Promise<FeedClient[]> {
    await write(history)
    const clients = [1, 2, 3].map((userId) => [new FeedClient(callerOf(userId)), userId] as const)
    const shards = await registerShards(test.db)
    const project = (chosen: readonly string[], limit: number) =>
      projectChunk(test.db, chosen, { limit, killPoint })
    await project([ACCOUNTS_SHARD], 3)
    for (const [at, [client]] of clients.entries()) await client.join((feeds[at % 2] as Feed).hub, ALL)
    for (const turn of turns) {
      // One shard, or all of them in one transaction.
      await project(turn % 2 === 0 ? shards : [shards[turn % shards.length] as string], 1 + (turn % 7))
      const [client] = clients[turn % 3] as (typeof clients)[number]
      // As if a process had not read rows before they were too old.
      if (turn % 13 === 0) await test.db.deleteFrom('read.feed').execute()
      if (turn % 5 === 0) client.leave()
      if (turn % 4 === 0) await client.join((feeds[turn % 2] as Feed).hub, ALL)
    }
    for (const [at, [client]] of clients.entries()) await client.join((feeds[at % 2] as Feed).hub, ALL)
    if (rebuilds) await rebuild(test.db, { limit: 1_000, killPoint, markedMs: MARKED_MS })
    for (const shard of shards) await projectShards(test.db, [shard], { limit: 1_000, killPoint })
    await settle()
    await expectFresh(clients)
    for (const [client] of clients) client.leave()
    return clients.map(([client]) => client)
  }

  it('when clients come, go and resume during any history, their copies equal fresh snapshots', async () => {
    await fc.assert(
      fc.asyncProperty(
        anyHistory,
        fc.array(fc.nat(1_000), { maxLength: 60 }),
        fc.boolean(),
        async (...run) => {
          await follow(...run)
        },
      ),
      { numRuns: 5, endOnFailure: true },
    )
  })

  it('when a process has not read the feed yet, a subscription waits for it', async () => {
    await test.db.deleteFrom('read.feed').execute()
    await test.db.deleteFrom('read.feed_state').execute()
    await test.db.insertInto('read.feed_state').values({ id: 1, epoch: 7, first_seq: 0, seq: 0 }).execute()
    const late = await startFeed(test)
    const client = new FeedClient(callerOf(1))
    try {
      const joined = client.join(late.hub, ['market.1.book'])
      await sleep(100)
      late.follower.start()
      await joined
      expect(client.copies.get('market.1.book')?.epoch).to.equal(7)
    } finally {
      client.leave()
      await late.stop()
    }
  })

  it('when a position is more than 1,000 rows or a megabyte behind, the client gets a snapshot instead of them', async () => {
    const epoch = Date.now() + 1_000_000
    const rows = (from: number, to: number, changes: string) => sql`
      insert into read.feed (seq, at, shard, shard_epoch, shard_seq, batch_id, heads, levels, balances, changes)
      select seq, ${Date.now()}, 'm1', 1, seq, null, json_build_object('book 1', seq - 1), '[]', null, ${changes}
      from generate_series(${from}::bigint, ${to}::bigint) seq
    `
    for (const table of ['read.feed', 'read.feed_heads', 'read.feed_state'])
      await sql`delete from ${sql.table(table)}`.execute(test.db)
    await test.db.insertInto('read.feed_state').values({ id: 1, epoch, first_seq: 0, seq: 1_003 }).execute()
    await test.db
      .insertInto('read.feed_heads')
      .values({ topic: 'book 1', seq: 1_003, prev_seq: 1_002 })
      .execute()
    await rows(1, 1_001, '{}').execute(test.db)
    await rows(1_002, 1_003, JSON.stringify({ note: 'x'.repeat(600_000) })).execute(test.db)
    const late = await startFeed(test)
    late.follower.start()
    /** What a client receives that has the topic up to this row. */
    const resume = async (seq: number): Promise<string[]> => {
      const client = new FeedClient(callerOf(1))
      client.copies.set('market.1.book', Object.assign(new TopicCopy(), { epoch, seq }))
      await client.join(late.hub, ['market.1.book'])
      client.leave()
      return client.calls.flat().map(({ type }) => type)
    }
    try {
      while (late.follower.ring.head < 1_003) await sleep(5)
      expect(await resume(1_002), 'half a megabyte').to.deep.equal(['subscribed', 'update'])
      expect(await resume(1_001), 'more than a megabyte').to.deep.equal(['subscribed', 'snapshot'])
      await sql`update read.feed set changes = '{}'`.execute(test.db)
      const small = await startFeed(test)
      await late.follower.stop()
      small.follower.start()
      try {
        while (small.follower.ring.head < 1_003) await sleep(5)
        Object.assign(late, { hub: small.hub })
        expect(await resume(3), '1,000 rows').to.deep.equal(['subscribed', 'update'])
        expect(await resume(2), '1,001 rows').to.deep.equal(['subscribed', 'snapshot'])
      } finally {
        await small.stop()
      }
    } finally {
      await late.stop()
    }
  })

  it('when a process has just started, accounts resume there without a snapshot', async () => {
    const [history] = fc.sample(anyHistory, { numRuns: 1, seed: 7 }) as [History]
    await write(history)
    const shards = await registerShards(test.db)
    const project = (limit: number) =>
      Promise.all(shards.map((shard) => projectChunk(test.db, [shard], { limit, killPoint })))
    await project(5)
    const clients = [1, 2, 3].map((userId) => new FeedClient(callerOf(userId)))
    for (const client of clients) {
      await client.join((feeds[0] as Feed).hub, ['user'])
      client.leave()
    }
    await project(1_000)
    const late = await startFeed(test)
    late.follower.start()
    try {
      await settle()
      for (const client of clients) {
        const calls = client.calls.length
        await client.join(late.hub, ['user'])
        const types = client.calls.slice(calls).flatMap((call) => call.map(({ type }) => type))
        expect(types[0]).to.equal('subscribed')
        expect(types).to.include('update').and.not.include('snapshot')
      }
    } finally {
      for (const client of clients) client.leave()
      await late.stop()
    }
  })

  it('when a batch clears, the messages of all of its topics arrive in one call', async () => {
    await fc.assert(
      fc.asyncProperty(anyHistory, async (history) => {
        const clients = await follow(history, [], false)
        for (const { calls } of clients) {
          const batches = calls.map((call) =>
            call.flatMap(({ topic, batch_id: id }) => (id ? `${topic.split('.')[1]} ${id}` : [])),
          )
          for (const batch of new Set(batches.flat().filter((id) => !id.startsWith('undefined'))))
            expect(
              batches.filter((call) => call.includes(batch)),
              `batch ${batch}`,
            ).to.have.length(1)
        }
      }),
      { numRuns: 2, endOnFailure: true },
    )
  })
})
