/** What snapshots and reads of the feed touch does not grow with the history of an account, nor with the rows that are kept. */
import { expect } from 'chai'
import { sql } from 'kysely'
import { after, before, describe, it } from 'mocha'
import { userChannel } from '../../../api/live/channels/user.ts'
import { feedAfter, topicState } from '../../../api/live/feed-query.ts'
import { type ExplainedRead, statementsAbove } from '../../support/explained-db.ts'
import { perpetual } from '../../support/markets.ts'
import { type ExchangeFixture, startExchange } from '../support/exchange-fixture.ts'

/** Each table has more than 300 pages, and a whole index of it more than 80. */
const ROWS = 30_000
const USER = 900

describe('the access paths of the live feed', function () {
  this.timeout(60_000)
  let exchange: ExchangeFixture
  before(async () => {
    exchange = await startExchange()
    await sql
      .raw(`
      insert into read.orders (order_id, market_id, seq, user_id, maker, hash, salt, side, type, price, quantity, trigger, leverage, reduce_only,
        expiration, status, reserved, held, openable, accepted_at, updated_at, arrival)
      select '1-' || n, 1, n, ${USER}, '0x', '0x', n, 'LONG', 'LIMIT', 1000, 1, 0, 1, false, 0,
        case when n % 3000 = 0 then 'OPEN' else 'CANCELLED' end, 0, 0, 1, n, n, n from generate_series(1, ${ROWS}) n;
      insert into read.fills (fill_id, market_id, batch_id, part, place, order_id, user_id, side, price, steps, taker_steps, status, matched_at, updated_at)
      select '1-' || n || '-1-1', 1, n, 1, 1, '1-' || n, ${USER}, 'LONG', 1000, 1, 0, 'CONFIRMED', n, 1 from generate_series(1, ${ROWS}) n;
      insert into read.ledger_transactions (id, user_id, type, amount, available_margin_delta, tx_hash, log_index, block, at)
      select 'tx-' || n, ${USER}, 'deposit', 1, 1, '0x', n, n, n from generate_series(1, ${ROWS}) n;
      insert into read.positions (user_id, market_id, size, entry_notional, folded_margin, leverage, updated_at)
      select n, 1, 1, 1, 1, 1, 1 from generate_series(1, ${ROWS}) n;
      insert into read.balances (user_id) select n from generate_series(1, ${ROWS}) n;
      insert into read.feed_state (epoch, first_seq, seq) values (1, 0, ${ROWS});
      insert into read.feed_heads select 'user ' || n, n, 0 from generate_series(1, ${ROWS}) n;
      insert into read.feed (seq, at, shard, shard_epoch, shard_seq, heads, changes)
      select n, n, 'm1', 1, n, '{}', repeat('x', 300) from generate_series(1, ${ROWS}) n;
      analyze
    `)
      .execute(exchange.db)
  })
  after(() => exchange.stop())

  const above = (most: number, read: ExplainedRead) => statementsAbove(exchange.url, most, read)

  it('when the snapshot of an account is read, it touches live orders and the newest fills and transactions only', async () => {
    const specs = { of: () => perpetual, load: async () => {} }
    const channel = userChannel(USER, specs)
    expect(await above(60, (db) => channel.snapshot(db as never))).to.deep.equal([])
  })

  it('when new rows of the feed are read, earlier rows are not touched', async () => {
    const read = async (db: Parameters<ExplainedRead>[0]) => {
      expect((await feedAfter(db, ROWS - 10, 500)).rows).to.have.length(10)
    }
    expect(await above(30, read)).to.deep.equal([])
  })

  it('when the place of a topic is read, one row of it is', async () => {
    const read = (db: Parameters<ExplainedRead>[0]) => topicState(db as never, `user ${USER}`)
    expect(await above(10, read)).to.deep.equal([])
  })
})
