/** The ranks of a market in Postgres. */
import { sql } from 'kysely'
import type { Db } from '../../db/client.ts'
import { storeRanks } from '../../db/deleveraging-ranks.ts'
import { checkFence } from '../../db/fence.ts'
import type { RankStore } from './ports.ts'

/** The commit does not wait for the disk: ranks that a crash loses are computed again. */
export const createRankStore = (db: Db): RankStore => ({
  save: (marketId, fence, ranks, at) =>
    db.transaction().execute(async (tx) => {
      await sql`set local synchronous_commit = off`.execute(tx)
      await checkFence(tx, fence)
      await storeRanks(tx, marketId, ranks, at)
    }),
})
