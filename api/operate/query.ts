/** Reads of the operator's view: each finds its rows by an index, and has a bound. */
import { sql } from 'kysely'
import type { Db } from '../../db/client.ts'
import { TERMS_SQL, type TermsColumns } from '../../db/terms.ts'
import type { StoredValue } from '../../domain/journal/journal-row.ts'
import type { Feed } from '../../domain/prices/feed.ts'
import type { FeedColumns } from '../markets/oracle.ts'

/** Rows of one list, at most. */
const MOST_ROWS = 500
/** Actions of one market that are counted, at most. */
export const MOST_ACTIONS = 1_000

export interface JournalRow {
  readonly token: number
  readonly incarnation: number
  readonly caught_up: number
  readonly written: number
  readonly head: number | null
}

export async function journalState(db: Db): Promise<JournalRow | null> {
  const { rows } = await sql<JournalRow>`
    select o.token, o.incarnation, o.caught_up, t.written, (select max(number) from engine_groups) as head
    from engine_ownership o cross join engine_tables t
  `.execute(db)
  return rows[0] ?? null
}

/** The stored digests of the state after these groups. */
export const digestsOf = (db: Db, groups: readonly number[]) =>
  db
    .selectFrom('engine_groups')
    .select(['number', 'digest'])
    .where('number', '=', sql<number>`any(${groups}::bigint[])`)
    .execute()

export interface MarketRow extends TermsColumns {
  readonly market_id: number
  readonly symbol: string
  readonly spec: Record<string, StoredValue>
  readonly last_batch_id: number
  readonly last_as_of: number
  readonly queued: number
  readonly signed: number
  readonly submitted: number
  readonly oldest_as_of: number | null
  readonly read_model_lag: number
}

export async function marketStates(db: Db): Promise<readonly MarketRow[]> {
  const { rows } = await sql<MarketRow>`
    select m.market_id, m.symbol, m.spec, ${sql.raw(TERMS_SQL)}, m.last_batch_id, m.last_as_of,
      a.queued, a.signed, a.submitted, a.oldest_as_of, greatest(0, s.head - coalesce(p.seq, 0)) as read_model_lag
    from markets m
    join shards s on s.shard = 'm' || m.market_id
    left join lateral (
      select min(seq) as seq from read.places where shard = s.shard and epoch = s.epoch and fill_to is null
    ) p on true
    cross join lateral (
      select count(*) filter (where status = 'QUEUED') as queued, count(*) filter (where status = 'SIGNED') as signed,
        count(*) filter (where status = 'SUBMITTED') as submitted, min(as_of) as oldest_as_of
      from (
        select status, as_of from actions
        where market_id = m.market_id and status in ('QUEUED', 'SIGNED', 'SUBMITTED')
        order by queue_no limit ${sql.lit(MOST_ACTIONS)}
      ) pending
    ) a
    order by m.market_id limit ${sql.lit(MOST_ROWS)}
  `.execute(db)
  return rows
}

/** The newest keys first: the first row of a lane is its present key. */
export const relayerKeys = (db: Db, chainId: number) =>
  db
    .selectFrom('relayers')
    .select(['lane', 'address', 'next_nonce', 'registered_at'])
    .where('chain_id', '=', chainId)
    .orderBy('registered_at', 'desc')
    .orderBy('address')
    .limit(MOST_ROWS)
    .execute()

export const jobLeases = (db: Db) =>
  db
    .selectFrom('leases')
    .select(['name', 'owner', 'token', 'expires_at'])
    .orderBy('name')
    .limit(MOST_ROWS)
    .execute()

export interface FeedRow extends FeedColumns {
  readonly market_id: number
  readonly symbol: string
  readonly feed: Feed
}

export const feedStates = (db: Db): Promise<readonly FeedRow[]> =>
  db
    .selectFrom('oracle_reports as o')
    .innerJoin('markets as m', 'm.market_id', 'o.market_id')
    .select(['o.market_id', 'm.symbol', 'o.feed', 'o.observed_at', 'o.readings'])
    .select(['o.status', 'o.reason', 'o.since'])
    .orderBy('o.market_id')
    .orderBy('o.feed')
    .limit(MOST_ROWS)
    .execute()

export const chainProgress = (db: Db) =>
  db.selectFrom('chain_progress').select(['head', 'completed_at', 'bank_pause_ends_at']).executeTakeFirst()
