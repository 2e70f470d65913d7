/** The messages of topics: a snapshot, then updates. */
import Type, { type TSchema } from 'typebox'
import { INTERVALS } from '../../domain/market-data/interval.ts'
import { Attempt } from '../adjustments/schema.ts'
import { AnnouncementHead, MaintenanceWindow } from '../announcements/schema.ts'
import { Auction } from '../auctions/schema.ts'
import { Candles } from '../candles/schema.ts'
import { Fill, PublicPart } from '../fills/schema.ts'
import { MarketStats } from '../market-stats/schema.ts'
import { MARKET_MODES } from '../markets/schema.ts'
import { Level } from '../order-book/schema.ts'
import { Order } from '../orders/schema.ts'
import { Transaction } from '../transactions/schema.ts'
import { amountOf, maybeAmountOf, maybeWords, nullable, ReadAfter, Time, words } from '../wire/schema.ts'

const envelope = (topic: string) => ({
  topic: Type.String({ pattern: `^${topic}$`, description: 'Name of the topic.' }),
  seq: Type.Integer({ description: 'Of this message in the topic. It grows, but not by one.' }),
  prev_seq: Type.Integer({
    description: 'The `seq` of the message before it in the topic; of a snapshot 0.',
  }),
  ts: Time('When the change became readable.'),
})

const snapshot = (topic: string, data: TSchema) =>
  Type.Object(
    {
      ...{ type: words(['snapshot'], 'Kind of the message.'), ...envelope(topic) },
      epoch: Type.Integer({ description: 'As in `subscribed`.' }),
      data,
    },
    { description: 'The state of the topic. It replaces everything that was received before.' },
  )

const update = (topic: string, data: TSchema, description: string) =>
  Type.Object(
    {
      ...{ type: words(['update'], 'Kind of the message.'), ...envelope(topic) },
      batch_id: Type.Optional(Type.Integer({ description: 'The batch that caused the change.' })),
      read_after: Type.Optional(ReadAfter),
      data,
    },
    { description },
  )

const OF_MARKET = 'market\\.[1-9]\\d*\\.'
const market = { market_id: Type.Integer(), symbol: Type.String() }

const book = Type.Object({
  ...market,
  long_levels: Type.Array(Level),
  short_levels: Type.Array(Level),
})

const parts = { batch_id: Type.Integer(), part: Type.Integer() }

const trades = Type.Object({
  ...market,
  removed: Type.Array(Type.Object(parts), {
    description: 'Parts of batches whose fills no longer count; first to apply.',
  }),
  parts: Type.Array(PublicPart, { description: 'New fills, and parts whose fills have another status.' }),
})

const auction = Type.Object({
  ...market,
  auctions: Type.Array(Auction, { description: 'New batches, and batches with another status.' }),
})

const UserPosition = Type.Object({
  ...market,
  side: maybeWords(['LONG', 'SHORT'], 'Null if no quantity is mined.'),
  ...amountOf('size', 'Signed quantity that is mined.'),
  ...amountOf('pending_size', 'Signed quantity that is matched, but not mined.'),
  ...amountOf('entry_notional', 'Value at entry.'),
  leverage: Type.Integer(),
  ...amountOf('realized_pnl', 'Realized profit.'),
  ...amountOf('fees', 'Fees paid.'),
  updated_at: Time('Time of the last change.'),
})

const UserBalance = Type.Object({
  ...amountOf('available', 'Free less reserved.'),
  ...amountOf('free', 'Balance outside positions.'),
  ...amountOf('reserved', 'Reserved by orders and fills.'),
  ...amountOf('pending_withdrawals', 'Requested, but not paid.'),
})

const account = {
  orders: Type.Array(Order),
  fills: Type.Array(Fill),
  positions: Type.Array(UserPosition),
  balance: UserBalance,
  transactions: Type.Array(Transaction),
  adjustments: Type.Array(Attempt),
}

const userSnapshot = Type.Object({ user_id: Type.Integer(), ...account })
/** Fields without a change are absent. */
const userUpdate = Type.Object({
  user_id: Type.Integer(),
  ...Object.fromEntries(Object.entries(account).map(([name, schema]) => [name, Type.Optional(schema)])),
  removed_parts: Type.Optional(
    Type.Array(Type.Object({ market_id: Type.Integer(), ...parts }), {
      description: 'Parts of batches whose fills no longer count; first to apply.',
    }),
  ),
  removed_transactions: Type.Optional(
    Type.Array(Type.String(), { description: 'Ids of transactions that a fork took back; first to apply.' }),
  ),
})

const markets = Type.Object({
  markets: Type.Array(
    Type.Object({
      ...market,
      type: Type.String(),
      ...maybeAmountOf('oracle_price', 'Oracle price.'),
      oracle_price_at: nullable(Time('When it was observed.')),
      ...maybeAmountOf('mark_price', 'Mark price.'),
      ...maybeAmountOf('last_price', 'Price of the last batch.'),
      last_batch_id: nullable(Type.Integer({ description: 'The last batch.' })),
      ...maybeAmountOf('price_protection', 'Width of the price protection.'),
      ...maybeAmountOf('next_price_protection', 'The width from `next_price_protection_at` on.'),
      next_price_protection_at: nullable(Time('When it changes.')),
    }),
  ),
})

const OF_CANDLES = `${OF_MARKET}candles\\.(${Object.keys(INTERVALS).join('|')})`
/** The three newest candles, because a voided batch changes earlier candles. */
const { market_id, symbol, interval, price_type, candles: newest } = Candles.properties
const candles = Type.Object({ market_id, symbol, interval, price_type, candles: newest })
const SUMMARY = 'The whole state: it replaces what was received before. At most one per second.'

const system = Type.Object({
  status: words(['ok', 'degraded'], 'degraded: at least one market rejects placements.'),
  chain_fresh: Type.Boolean({ description: 'Whether the exchange has read the chain recently enough.' }),
  maintenance: Type.Array(MaintenanceWindow, {
    description: 'Announced maintenance windows that have not ended, by their ends.',
  }),
  announcements: Type.Array(AnnouncementHead, {
    description:
      'Those of the newest ten that are not withdrawn, newest first; texts by GET /v0/announcements.',
  }),
  markets: Type.Array(
    Type.Object({
      ...market,
      mode: words(MARKET_MODES, 'Mode of the market.'),
      oracle_fresh: Type.Boolean(),
      placements: Type.Boolean({ description: 'Whether the market accepts placements now.' }),
    }),
  ),
})

/** By name in the description. */
export const TOPIC_MESSAGES = {
  bookSnapshot: snapshot(`${OF_MARKET}book`, book),
  bookUpdate: update(
    `${OF_MARKET}book`,
    book,
    'Levels that have changed, each with its total; quantity 0 removes a level.',
  ),
  tradesSnapshot: snapshot(`${OF_MARKET}trades`, trades),
  tradesUpdate: update(`${OF_MARKET}trades`, trades, 'Fills that have changed, by `fill_id`.'),
  auctionSnapshot: snapshot(`${OF_MARKET}auction`, auction),
  auctionUpdate: update(`${OF_MARKET}auction`, auction, 'Batches that have changed, by `batch_id`.'),
  statsSnapshot: snapshot(`${OF_MARKET}stats`, MarketStats),
  statsUpdate: update(`${OF_MARKET}stats`, MarketStats, SUMMARY),
  candlesSnapshot: snapshot(OF_CANDLES, candles),
  candlesUpdate: update(OF_CANDLES, candles, SUMMARY),
  marketsSnapshot: snapshot('markets', markets),
  marketsUpdate: update('markets', markets, 'Markets that have changed, by `market_id`.'),
  systemSnapshot: snapshot('system', system),
  systemUpdate: update('system', system, 'The whole state. It cannot be resumed.'),
  userSnapshot: snapshot('user', userSnapshot),
  userUpdate: update(
    'user',
    userUpdate,
    'What has changed in the account. Fields without a change are absent.',
  ),
} as const
