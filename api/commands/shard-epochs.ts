/** The epochs of the journals, which bookmarks name. They rise when the read model is rebuilt. */
import type { Db } from '../../db/client.ts'
import { shardId } from '../../db/journal.ts'
import type { Bookmark as EngineBookmark } from '../../domain/exchange/decide/orders/command.ts'
import { ACCOUNTS_SHARD, marketShard } from '../../domain/journal/journal-row.ts'
import type { MarketId } from '../../domain/units.ts'
import type { Clock } from '../../service/clock.ts'
import type { Bookmark } from './command.ts'

/** Epochs are read again after this time, or once a bookmark was stale. A bookmark of the epoch before is answered as stale, and its client reads without it. */
const FRESH_MS = 1_000

export interface ShardEpochs {
  /** Reads the epochs unless they are fresh. Afterwards `bookmark` knows every journal that had a row when it began. */
  refresh(): Promise<void>
  bookmark(at: EngineBookmark): Bookmark
  /** The next `refresh` reads the epochs. */
  expire(): void
}

const shardOf = (marketId: MarketId): string => (marketId === 0 ? ACCOUNTS_SHARD : marketShard(marketId))

export function createShardEpochs(db: Db, clock: Clock): ShardEpochs {
  let epochs: ReadonlyMap<string, number> = new Map()
  let readAt = Number.NEGATIVE_INFINITY
  let reading: Promise<void> | null = null

  const read = async (): Promise<void> => {
    const at = clock.now()
    const rows = await db.selectFrom('shards').select(['shard', 'epoch']).execute()
    epochs = new Map(rows.map(({ shard, epoch }) => [shard, epoch]))
    readAt = at
  }
  return {
    async refresh() {
      if (Math.abs(clock.now() - readAt) < FRESH_MS) return
      reading ??= read().finally(() => {
        reading = null
      })
      await reading
    },
    expire() {
      readAt = Number.NEGATIVE_INFINITY
    },
    bookmark({ marketId, seq }) {
      const shard = shardOf(marketId)
      // The first rows of a new market can be younger than the last read; journals begin with epoch 1.
      return { shard_id: shardId({ shard, epoch: epochs.get(shard) ?? 1 }), shard_seq: String(seq) }
    },
  }
}
