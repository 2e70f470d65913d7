/** After the load: everything that was accepted is there, once, everywhere. */
import { sql } from 'kysely'
import type { Db } from '../../db/client.ts'

const PATIENCE_MS = 120_000

/** Waits until everything logged is in the read model. */
export async function caughtUp(db: Db): Promise<void> {
  const deadline = Date.now() + PATIENCE_MS
  for (;;) {
    const { rows } = await sql<{ unread: number }>`
      select count(*) as unread from shards s left join read.projection p using (shard) where s.head > coalesce(p.seq, 0)
    `.execute(db)
    if (rows[0]?.unread === 0) return
    if (Date.now() > deadline) throw new Error('the read model does not catch up')
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

export interface Counted {
  readonly orders: number
  readonly order_placed: number
  /** NaN where nobody projects. */
  readonly readable: number
  /** Accounts whose reservation is not what their orders hold back, here or in the read model. */
  readonly wrong_reservations: number
}

/** Counts everything, and fails where it is not what was accepted. */
export async function checkNothingLost(db: Db, accepted: number, isProjected: boolean): Promise<Counted> {
  const { rows } = await sql<Counted>`
    select (select count(*) from orders) as orders,
      (select count(*) from journal where row->>'kind' = 'order_placed') as order_placed,
      (select count(*) from read.orders) as readable,
      (
        select count(*) from accounts a
        left join (
          select user_id, sum(reserved + held) as reserved from orders group by user_id
        ) o using (user_id)
        left join read.balances b using (user_id)
        where a.reserved <> coalesce(o.reserved, 0)
          or (${isProjected}::boolean and b.reserved is distinct from a.reserved)
      ) as wrong_reservations
  `.execute(db)
  const counted = rows[0] as Counted
  const counts = [counted.orders, counted.order_placed, ...(isProjected ? [counted.readable] : [])]
  if (counts.some((count) => count !== accepted) || counted.wrong_reservations > 0)
    throw new Error(`${accepted} orders were accepted, but: ${JSON.stringify(counted)}`)
  return isProjected ? counted : { ...counted, readable: Number.NaN }
}
