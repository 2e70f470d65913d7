import { type Kysely, sql } from 'kysely'

/** Commands that a trader has given an id to, so that sending one again is answered and not done again. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table client_requests (
      user_id bigint not null references users,
      client_request_id text not null,
      digest bytea not null,
      answer text not null,
      created_at bigint not null,
      primary key (user_id, client_request_id)
    );
    create index client_requests_by_age on client_requests (created_at);
  `.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`drop table client_requests`.execute(db)
}
