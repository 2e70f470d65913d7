import { type Kysely, sql } from 'kysely'

/**
 * `terms`: parameters and mode of a market as on the chain, with announced changes; null as long as they are those listed. `fee_periods`:
 * in which other rates than the highest are charged. `reserved_fee`: the taker rate at which the market's reservations are computed.
 * `reserving_after`: while they are computed again at another rate, the account up to which that is done.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table markets add column terms jsonb, add column fee_periods jsonb not null default '[]',
      add column reserved_fee numeric(78, 0) not null default 0, add column reserving_after bigint;
    update markets set reserved_fee = coalesce((spec ->> 'takerFee')::numeric, 0);
    grant update (terms) on markets to clearbatch_indexer;
    grant update (reserved_fee, reserving_after) on markets to clearbatch_keeper
  `.execute(db)
}

/** Batches that charged other rates keep them. */
export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table markets drop column terms, drop column fee_periods, drop column reserved_fee, drop column reserving_after
  `.execute(db)
}
