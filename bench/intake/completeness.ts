/** Checks after a load that every accepted order is stored exactly once in write side, journal and read model. */
import { sql } from 'kysely'
import type { Db } from '../../db/client.ts'

const CATCH_UP_LIMIT_MS = 120_000

/** Waits until the read model has every row of the journal. */
export async function waitForReadModel(db: Db): Promise<void> {
  const deadline = Date.now() + CATCH_UP_LIMIT_MS
  for (;;) {
    const { rows } = await sql<{ unread: number }>`
      select count(*) as unread from shards s
      where s.head > (select coalesce(min(p.seq), 0) from read.places p where p.shard = s.shard)
    `.execute(db)
    if (rows[0]?.unread === 0) return
    if (Date.now() > deadline)
      throw new Error(`after ${CATCH_UP_LIMIT_MS} ms ${rows[0]?.unread} shards are not projected`)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

export interface Counts {
  readonly orders: number
  readonly order_placed: number
  /** NaN if no indexer runs. */
  readonly readable: number
  /** Accounts whose reservation in the read model differs from the sum of their orders'. 0 if no indexer runs. */
  readonly wrong_reservations: number
}

/** Throws if a count differs from the number of accepted orders. */
export async function checkComplete(db: Db, accepted: number, isProjected: boolean): Promise<Counts> {
  const { rows } = await sql<Counts>`
    select (select count(*) from orders) as orders,
      (select count(*) from journal where row->>'kind' = 'order_placed') as order_placed,
      (select count(*) from read.orders) as readable,
      (
        select count(*) from read.balances b
        left join (
          select user_id, sum(reserved + held) as reserved from orders group by user_id
        ) o using (user_id)
        where ${isProjected}::boolean and b.reserved <> coalesce(o.reserved, 0)
      ) as wrong_reservations
  `.execute(db)
  const counted = rows[0] as Counts
  const counts = [counted.orders, counted.order_placed, ...(isProjected ? [counted.readable] : [])]
  if (counts.some((count) => count !== accepted) || counted.wrong_reservations > 0)
    throw new Error(`${accepted} orders were accepted, but the database has ${JSON.stringify(counted)}`)
  return isProjected ? counted : { ...counted, readable: Number.NaN }
}
