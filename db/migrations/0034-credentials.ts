import { type Kysely, sql } from 'kysely'

/**
 * `scope`: `read` keys are refused by every endpoint that takes effect. `allowed_addresses`: IP addresses and networks from which the key is
 * accepted; null: from all. `last_used_at`: written at most once a minute. A row of `auth_challenges` is a text that the owner's wallet signs
 * once, for one action; `credential` is the kind by which it was requested, `used_at` is null until the challenge is used.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table api_keys
      add column scope text not null default 'trade' check (scope in ('trade', 'read')),
      add column allowed_addresses text[],
      add column last_used_at bigint;
    grant update (scope, allowed_addresses, last_used_at) on api_keys to clearbatch_api;
    create table auth_challenges (
      challenge_id uuid primary key,
      user_id bigint not null references users,
      credential text not null check (credential in ('api_key', 'identity_token')),
      action text not null check (action in ('rotate_api_key')),
      message text not null,
      created_at bigint not null,
      expires_at bigint not null,
      used_at bigint
    );
    create index auth_challenges_of_user on auth_challenges (user_id, created_at);
    create index auth_challenges_by_age on auth_challenges (created_at);
    grant select, insert, delete, update (used_at) on auth_challenges to clearbatch_api
  `.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`
    drop table auth_challenges;
    alter table api_keys drop column scope, drop column allowed_addresses, drop column last_used_at
  `.execute(db)
}
