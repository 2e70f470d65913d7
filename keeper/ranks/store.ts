/** The ranks of a market in Postgres. */
import { sql } from 'kysely'
import type { Db } from '../../db/client.ts'
import { DATABASE_NOW, type DatabaseTime } from '../../db/clock.ts'
import { storeRanks } from '../../db/deleveraging-ranks.ts'
import { checkFence } from '../../db/fence.ts'
import { fundingColumn, type StoredFunding, toFunding } from '../../db/funding.ts'
import { samplePositions } from '../../db/positions.ts'
import { TERMS_SQL, type TermsColumns, toMarketTerms } from '../../db/terms.ts'
import { MOST_RANKED } from '../../domain/risk/rank-lights.ts'
import type { Millis, Price } from '../../domain/units.ts'
import type { RankStore } from './ports.ts'

interface BasisRow extends TermsColumns {
  readonly now: number
  readonly oracle: bigint | null
  readonly funding: StoredFunding
}

/** `now`: the database's clock. */
export const createRankStore = (db: Db, now: DatabaseTime = () => DATABASE_NOW): RankStore => ({
  async load(spec) {
    const { rows } = await sql<BasisRow>`
      select ${now()} as now, r.price as oracle, ${sql.raw(TERMS_SQL)}, ${sql.raw(fundingColumn('m.market_id'))} as funding
      from markets m left join oracle_reports r on r.market_id = m.market_id and r.feed = 'index' and r.status <> 'halted'
      where m.market_id = ${spec.marketId}
    `.execute(db)
    const row = rows[0] as BasisRow
    return {
      now: row.now as Millis,
      oracle: row.oracle as Price | null,
      funding: toFunding(row.funding),
      terms: toMarketTerms(row, spec),
    }
  },

  positions: (marketId) => samplePositions(db, marketId, MOST_RANKED),

  /** The commit does not wait for the disk: ranks that a crash loses are computed again. */
  save: (marketId, fence, ranks, at) =>
    db.transaction().execute(async (tx) => {
      await sql`set local synchronous_commit = off`.execute(tx)
      await checkFence(tx, fence)
      await storeRanks(tx, marketId, ranks, at)
    }),
})
