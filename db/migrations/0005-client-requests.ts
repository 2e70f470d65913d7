import { type Kysely, sql } from 'kysely'

/** Commands with a `client_request_id`: a repeated command returns its stored answer and is not executed again. */
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
