/** The figures of a market in Postgres: rows by their keys, and as many as liquidations run. The backstop's position and funds are from the read model. */
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
  /** The tables of its position and funds are being filled. */
  readonly is_filling: boolean
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
        coalesce(p.size + p.pending, 0) as size, coalesce(b.free, 0) as free,
        coalesce((m.ended ->> 'deficit')::numeric, 0) as deficit, ${sql.raw(fundingColumn('m.market_id'))} as funding,
        exists (
          select from read.places where projection in ('orders', 'balances') and fill_to is not null
        ) as is_filling
      from markets m
      left join oracle_reports r on r.market_id = m.market_id and r.feed = 'index'
      cross join lateral (
        select count(*) as running, count(*) filter (where attempts > 0) as failing, min(started_at) as oldest_at
        from liquidations where market_id = m.market_id
      ) l
      left join users u on u.address = m.backstop
      left join read.positions p on p.user_id = u.user_id and p.market_id = m.market_id
      left join read.balances b on b.user_id = u.user_id
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
        row.backstop === null || row.is_filling
          ? null
          : { cap: row.backstop_cap as Quote, size: row.size as Steps, free: row.free as Quote },
      deficit: row.deficit as Quote,
      funding: toFunding(row.funding).running,
    }
  },
})
