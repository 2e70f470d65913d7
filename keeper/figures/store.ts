/** The figures of a market in Postgres: rows by their keys, and as many as liquidations run. */
import { type RawBuilder, sql } from 'kysely'
import type { Db } from '../../db/client.ts'
import { DATABASE_NOW } from '../../db/clock.ts'
import { fundingColumn, type StoredFunding, toFunding } from '../../db/funding.ts'
import type { Millis, Price, Quote, Steps } from '../../domain/units.ts'
import type { FigureStore } from './ports.ts'

interface FiguresRow {
  readonly now: number
  readonly oracle: bigint | null
  readonly running: number
  readonly failing: number
  readonly oldest_at: number | null
  readonly backstop: string | null
  readonly backstop_cap: bigint
  readonly size: number
  readonly free: bigint
  readonly deficit: bigint
  readonly funding: StoredFunding
}

/** `now`: the time of each read; tests set it. */
export const createFigureStore = (
  db: Db,
  now: () => RawBuilder<number> = () => DATABASE_NOW,
): FigureStore => ({
  async load(marketId) {
    const { rows } = await sql<FiguresRow>`
      select ${now()} as now, r.price as oracle, l.running, l.failing, l.oldest_at, m.backstop, m.backstop_cap,
        coalesce(p.matched_size, 0) as size, coalesce(a.free, 0) as free,
        coalesce((m.ended ->> 'deficit')::numeric, 0) as deficit, ${sql.raw(fundingColumn('m.market_id'))} as funding
      from markets m
      left join oracle_reports r on r.market_id = m.market_id and r.feed = 'index'
      cross join lateral (
        select count(*) as running, count(*) filter (where attempts > 0) as failing, min(started_at) as oldest_at
        from liquidations where market_id = m.market_id
      ) l
      left join users u on u.address = m.backstop
      left join positions p on p.user_id = u.user_id and p.market_id = m.market_id
      left join accounts a on a.user_id = u.user_id
      where m.market_id = ${marketId}
    `.execute(db)
    const row = rows[0] as FiguresRow
    return {
      now: row.now as Millis,
      oracle: row.oracle as Price | null,
      liquidations: {
        ...{ running: row.running, failing: row.failing },
        oldestAt: row.oldest_at as Millis | null,
      },
      backstop:
        row.backstop === null
          ? null
          : { cap: row.backstop_cap as Quote, size: row.size as Steps, free: row.free as Quote },
      deficit: row.deficit as Quote,
      funding: toFunding(row.funding).running,
    }
  },
})
