/** `markets`: prices and announcements of all markets, at most once per second and market. Prices of batches are in `auction`. */

import type { Selectable } from 'kysely'
import { MARKETS_HEAD } from '../../../db/feed-schema.ts'
import type { ReadMarketsTable } from '../../../db/read-schema.ts'
import { MARKET_TABLES } from '../../markets/query.ts'
import { maybeAmount, maybeTime } from '../../wire/amounts.ts'
import type { Channel } from '../channel.ts'

const view = (row: Selectable<ReadMarketsTable>) => ({
  market_id: row.market_id,
  symbol: row.symbol,
  type: row.kind,
  ...maybeAmount('oracle_price', row.oracle_price),
  oracle_price_at: maybeTime(row.oracle_at),
  ...maybeAmount('mark_price', row.mark_price ?? row.oracle_price),
  ...maybeAmount('price_protection', row.price_protection),
  ...maybeAmount('next_price_protection', row.next_price_protection),
  next_price_protection_at: maybeTime(row.next_price_protection_at),
})

export const MARKETS_CHANNEL: Channel = {
  head: MARKETS_HEAD,
  scope: { tables: MARKET_TABLES },
  isConflatable: true,
  async snapshot(tx) {
    const rows = await tx.selectFrom('read.markets').selectAll().orderBy('market_id').execute()
    return { markets: rows.map(view) }
  },
  update(rows) {
    const last = new Map(
      rows.flatMap(({ changes }) => changes.markets ?? []).map((row) => [row.market_id, row]),
    )
    return { markets: [...last.values()].map(view) }
  },
}
