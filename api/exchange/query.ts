/** State of the exchange: modes, oracle reports, lag of the read model, and the chain's progress. */
import { sql } from 'kysely'
import type { Db } from '../../db/client.ts'
import { TERMS_SQL, type TermsColumns } from '../../db/terms.ts'
import type { StoredValue } from '../../domain/journal/journal-row.ts'

export interface StatusRow extends TermsColumns {
  readonly spec: Record<string, StoredValue>
  readonly market_id: number
  readonly symbol: string
  readonly last_batch_id: number
  readonly observed_at: number | null
  readonly lag: number
}

export async function exchangeStatus(db: Db) {
  const markets = await sql<StatusRow>`
    select m.market_id, m.symbol, m.spec, ${sql.raw(TERMS_SQL)}, m.last_batch_id, o.observed_at,
      greatest(0, s.head - coalesce(p.seq, 0)) as lag
    from markets m
    join shards s on s.shard = 'm' || m.market_id
    left join oracle_reports o on o.market_id = m.market_id and o.feed = 'index'
    left join lateral (
      select min(seq) as seq from read.places where shard = s.shard and epoch = s.epoch and fill_to is null
    ) p on true
    order by m.market_id
  `.execute(db)
  const chain = await db
    .selectFrom('chain_progress')
    .select(['chain_id', 'head', 'completed_at'])
    .executeTakeFirst()
  return { markets: markets.rows, chain: chain ?? null }
}
