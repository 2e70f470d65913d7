/** The channel of each topic. */
import type { MarketSpec } from '../../domain/market/market.ts'
import type { Caller } from '../auth/caller.ts'
import { ApiError } from '../errors.ts'
import type { MarketDirectory } from '../markets/market-directory.ts'
import type { Channel, ChannelSpecs } from './channel.ts'
import { auctionChannel } from './channels/auction.ts'
import { bookChannel } from './channels/book.ts'
import { candlesChannel } from './channels/candles.ts'
import { marketsChannel } from './channels/markets.ts'
import { type StatsPorts, statsChannel } from './channels/stats.ts'
import { tradesChannel } from './channels/trades.ts'
import { userChannel } from './channels/user.ts'
import type { FeedRow } from './feed-row.ts'
import { type Topic, topicName } from './topics.ts'

export interface ChannelPorts extends StatsPorts {
  readonly markets: MarketDirectory
}

export function createChannels(ports: ChannelPorts) {
  const { markets, clock } = ports
  const known = new Map<number, MarketSpec>()
  const specs: ChannelSpecs = {
    of(marketId) {
      const spec = known.get(marketId)
      if (spec === undefined) throw new Error(`market ${marketId} of the feed is not loaded`)
      return spec
    },
    async load(rows) {
      for (const { market_id: id } of rows)
        if (id !== null && !known.has(id)) known.set(id, await markets.byId(id))
    },
  }

  return {
    /** Loads the markets of the rows. Transactions of the shard of accounts may name any. */
    prepare: (rows: readonly FeedRow[]) =>
      specs.load(
        rows.flatMap<{ readonly market_id: number | null }>((row) =>
          row.marketId === null ? (row.changes.transactions ?? []) : [{ market_id: row.marketId }],
        ),
      ),

    async channelOf(
      topic: Topic,
      caller: Caller | null,
    ): Promise<{ readonly key: string; readonly channel: Channel }> {
      const key = topicName(topic)
      switch (topic.kind) {
        case 'user': {
          if (caller === null) throw new ApiError('CREDENTIAL_MISSING', { field: 'topics', received: key })
          return { key: `user ${caller.userId}`, channel: userChannel(caller.userId, specs) }
        }
        case 'markets':
          return { key, channel: marketsChannel(specs) }
        case 'book':
          return { key, channel: bookChannel(await markets.byId(topic.marketId)) }
        case 'trades':
          return { key, channel: tradesChannel(await markets.byId(topic.marketId)) }
        case 'auction':
          return { key, channel: auctionChannel(await markets.byId(topic.marketId)) }
        case 'stats':
          return { key, channel: statsChannel(await markets.byId(topic.marketId), ports) }
        case 'candles':
          return { key, channel: candlesChannel(await markets.byId(topic.marketId), topic.interval, clock) }
        default:
          throw new ApiError('TOPIC_NOT_FOUND', { field: 'topics', received: key })
      }
    },
  }
}
