import { type Kysely, sql } from 'kysely'

/**
 * Earlier versions took `asOf` from the system's clock: a step ahead left a time that stops the market until the clocks have caught up. Where it
 * is ahead of the database's clock, the time of the last action that is not voided follows it, which is what the contract compares with.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    update markets m set last_as_of = coalesce((
      select a.as_of from actions a
      where a.market_id = m.market_id and a.status in ('QUEUED', 'SIGNED', 'SUBMITTED', 'MINED')
      order by a.queue_no desc limit 1
    ), 0)
    where m.last_as_of > (extract(epoch from clock_timestamp()) * 1000)::bigint
  `.execute(db)
}

/** The time before is not restored: it stopped the market. */
export async function down(): Promise<void> {}
