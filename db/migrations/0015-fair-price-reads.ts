import { type Kysely, sql } from 'kysely'

/**
 * Readers see the protection prices of market orders, and the rule, oracle time and status of each batch. Earlier batches get their status
 * and oracle time from the write side; protection prices and rule versions of the past appear after a rebuild, as far as the journal has them.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table read.orders add column protection_price bigint;
    alter table read.fills add column protection_price bigint;
    alter table read.batches add column rule_version integer, add column oracle_at bigint, add column status text;
    update read.batches r set oracle_at = b.oracle_at, status = b.status
      from batches b where b.market_id = r.market_id and b.batch_id = r.batch_id;
    alter table read.batches alter column oracle_at set not null, alter column status set not null
  `.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table read.batches drop column rule_version, drop column oracle_at, drop column status;
    alter table read.fills drop column protection_price;
    alter table read.orders drop column protection_price
  `.execute(db)
}
