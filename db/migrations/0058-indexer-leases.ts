import { type Kysely, sql } from 'kysely'

/** A lease decides which indexer follows the chain: a session lock stays with a process that is stopped or partitioned. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table indexer_leases (
      name text primary key,
      owner text not null,
      token bigint not null,
      expires_at bigint not null
    );
    grant select, insert, update (owner, token, expires_at) on indexer_leases to clearbatch_indexer
  `.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`drop table indexer_leases`.execute(db)
}
