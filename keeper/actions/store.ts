/** The queue of a market's actions in Postgres. */
import { sql } from 'kysely'
import { queueSingle, readQueueTail } from '../../db/actions.ts'
import type { Db, Tx } from '../../db/client.ts'
import { DATABASE_NOW, type DatabaseTime } from '../../db/clock.ts'
import { checkFence } from '../../db/fence.ts'
import { loadFunding } from '../../db/funding.ts'
import { appendRows, lockShard } from '../../db/journal.ts'
import { recordAsOf } from '../../db/markets.ts'
import { enqueue } from '../../domain/actions/queue.ts'
import { nextAsOf } from '../../domain/auction/as-of.ts'
import { invariant } from '../../domain/invariant.ts'
import { marketShard } from '../../domain/journal/journal-row.ts'
import type { Millis } from '../../domain/units.ts'
import { accept } from '../../domain/verdict.ts'
import type { ActionQueue } from './ports.ts'

async function read(tx: Tx, now: DatabaseTime): Promise<Millis> {
  const { rows } = await sql<{ now: number }>`select ${now()} as now`.execute(tx)
  return rows[0]?.now as Millis
}

/** `now`: the time of the database's clock. */
export const createActionQueue = (db: Db, now: DatabaseTime = () => DATABASE_NOW): ActionQueue => ({
  enqueue: (marketId, fence, headTime, build) =>
    db.transaction().execute(async (tx) => {
      const head = await lockShard(tx, marketShard(marketId))
      await checkFence(tx, fence)
      const tail = await readQueueTail(tx, marketId)
      const asOf = nextAsOf({ now: await read(tx, now), headTime, lastAsOf: tail.lastAsOf })
      if (asOf === null) return accept(null)
      const { usedReport } = tail
      const action = build({ asOf, usedReport, funding: await loadFunding(tx, marketId) })
      if (action === null) return accept(null)
      invariant(action.asOf === asOf, 'an action is queued as of the time of the end of the queue')
      const verdict = enqueue(tail, action)
      if (!verdict.ok) return verdict
      await recordAsOf(tx, marketId, asOf)
      const row = await queueSingle(tx, marketId, action)
      await appendRows(tx, head, [row])
      return accept(row.queue_no)
    }),
})
