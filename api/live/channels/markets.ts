/** `markets`: prices and announcements of all markets. Batches of many markets share its messages. */

import type { Selectable } from 'kysely'
import { MARKETS_HEAD } from '../../../db/feed-schema.ts'
import type { ReadMarketsTable } from '../../../db/read-schema.ts'
import { priceOf } from '../../../domain/market/market.ts'
import type { Ticks } from '../../../domain/units.ts'
import { MARKET_TABLES } from '../../markets/query.ts'
import { maybeAmount, maybeTime } from '../../wire/amounts.ts'
import type { Channel, ChannelSpecs } from '../channel.ts'

export function marketsChannel(specs: ChannelSpecs): Channel {
  const view = (row: Omit<Selectable<ReadMarketsTable>, 'spec'>) => ({
    market_id: row.market_id,
    symbol: row.symbol,
    type: row.kind,
    ...maybeAmount('oracle_price', row.oracle_price),
    oracle_price_at: maybeTime(row.oracle_at),
    ...maybeAmount('mark_price', row.mark_price ?? row.oracle_price),
    ...maybeAmount(
      'last_price',
      row.last_price === null ? null : priceOf(specs.of(row.market_id), row.last_price as Ticks),
    ),
    last_batch_id: row.last_batch_id,
    ...maybeAmount('price_protection', row.price_protection),
    ...maybeAmount('next_price_protection', row.next_price_protection),
    next_price_protection_at: maybeTime(row.next_price_protection_at),
  })
  return {
    head: MARKETS_HEAD,
    scope: { tables: MARKET_TABLES },
    isConflatable: true,
    pacing: 'all',
    async snapshot(tx) {
      const rows = await tx.selectFrom('read.markets').selectAll().orderBy('market_id').execute()
      await specs.load(rows)
      return { markets: rows.map(view) }
    },
    update(rows) {
      const last = new Map(
        rows.flatMap(({ changes }) => changes.markets ?? []).map((row) => [row.market_id, row]),
      )
      return { markets: [...last.values()].map(view) }
    },
  }
}
