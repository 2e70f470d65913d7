import { type Kysely, sql } from 'kysely'

/**
 * When a market closes, and its dispute window, in milliseconds: as listed, until the indexer finds them changed on the chain. 0: not
 * set.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table markets add column expires_at bigint not null default 0, add column settling_at bigint not null default 0,
      add column dispute_window bigint not null default 0;
    update markets set expires_at = coalesce((spec ->> 'expiresAt')::bigint, 0),
      dispute_window = coalesce((spec ->> 'disputeWindow')::bigint, 0);
    grant update (expires_at, settling_at, dispute_window) on markets to clearbatch_indexer
  `.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table markets drop column expires_at, drop column settling_at, drop column dispute_window
  `.execute(db)
}
