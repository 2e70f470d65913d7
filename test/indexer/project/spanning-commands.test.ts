/** The `command_spanned` row of a command over several shards does not delay the projection of `accounts`. */
import { expect } from 'chai'
import { after, before, beforeEach, describe, it } from 'mocha'
import { ACCOUNTS_SHARD, type JournalRow, marketShard } from '../../../domain/journal/journal-row.ts'
import type { Millis } from '../../../domain/units.ts'
import { projectAll, projectShards, registerShards } from '../../../indexer/project/project-shards.ts'
import { Projector } from '../../../indexer/project/projector.ts'
import { waitFor } from '../../support/patience.ts'
import { freshDatabase, type TestDatabase } from '../support/database.ts'
import { appendToJournal, clearJournal } from '../support/read-model.ts'

const killPoint = () => {}
const POISONED = marketShard(1)

/** A row that changes no read table. */
const filler = (at: number): JournalRow => ({ kind: 'part_confirmed', batch_id: 1, part: 1, block: 1, at })
/** A row that no projection can apply: its order was never placed. */
const poison: JournalRow = {
  kind: 'order_ended',
  order_id: '1-77',
  user_id: 1,
  status: 'CANCELLED',
  reason: 'USER_CANCELLED',
  reserved_delta: '0',
  at: 1,
  note: null,
}
const user: JournalRow = { kind: 'user_created', user_id: 1, address: '0xa', at: 1 }
const spanned: JournalRow = { kind: 'command_spanned', user_id: 1, shards: { [POISONED]: 2, m2: 1 }, at: 1 }
const deposit: JournalRow = {
  kind: 'balance_changed',
  ...{ cause: 'deposit', rollback: false, user_id: 1, free_delta: '70', pending_withdrawal_delta: '0' },
  ...{ block: 1, tx_hash: '0x', log_index: 0, at: 1 },
}

describe('a command over several shards', () => {
  let test: TestDatabase
  before(async () => {
    test = await freshDatabase()
  })
  after(() => test.close())
  beforeEach(() => clearJournal(test.db))

  const freeOf = async (): Promise<bigint | undefined> =>
    (await test.db.selectFrom('read.balances').select('free').executeTakeFirst())?.free

  it('when a shard that it names is behind, later rows of accounts are projected', async () => {
    await appendToJournal(test.db, ACCOUNTS_SHARD, [user, spanned, deposit])
    await appendToJournal(test.db, POISONED, [filler(1), filler(2)])
    await registerShards(test.db)
    expect(await projectShards(test.db, [ACCOUNTS_SHARD], { limit: 1, killPoint })).to.equal(3)
    expect(await freeOf()).to.equal(70n)
  })

  it('when the projection of a market fails, deposits become visible, and so do the other markets', async () => {
    await appendToJournal(test.db, POISONED, [poison])
    await appendToJournal(test.db, ACCOUNTS_SHARD, [user, spanned, deposit])
    await appendToJournal(test.db, 'm2', [filler(1)])
    let failures = 0
    const loops = new Projector(
      {
        db: test.db,
        fillDb: test.db,
        clock: { now: () => Date.now() as Millis },
        logger: { debug() {}, info() {}, warn() {}, error: () => void failures++ },
        metrics: { projected() {}, failed() {} },
      },
      { limit: 10, pollMs: 50, killPoint },
    )
    const placeOf = async (shard: string): Promise<number | undefined> => {
      const rows = await test.db.selectFrom('read.places').select(['shard', 'seq']).execute()
      return new Map(rows.map((place) => [place.shard, place.seq])).get(shard)
    }
    loops.start()
    // Shards are projected in no given order: the deposit may be visible before the market fails.
    await waitFor(freeOf, (free) => free === 70n)
    await waitFor(
      () => placeOf('m2'),
      (seq) => seq === 1,
    )
    await waitFor(
      async () => failures,
      (count) => count > 0,
    )
    await loops.stop()
    expect(failures).to.be.greaterThan(0)
    expect(await placeOf('m2')).to.equal(1)
  })

  it('when all shards are projected, every row is projected once', async () => {
    await appendToJournal(test.db, ACCOUNTS_SHARD, [user, spanned, deposit])
    await appendToJournal(test.db, 'm2', [filler(1)])
    expect(await projectAll(test.db, { limit: 1, killPoint })).to.equal(4)
    expect(await projectAll(test.db, { limit: 1, killPoint })).to.equal(0)
  })
})
