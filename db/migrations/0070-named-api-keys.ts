import { type Kysely, sql } from 'kysely'

/**
 * An account has several keys, each with a name; the key that it had is named `default`. `connection_switches.key_name`: the key of the connection, null
 * for an identity token; a switch fires unless another connection of the same credential is alive.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table api_keys
      add column name text not null default 'default' check (name ~ '^[a-z0-9][a-z0-9_-]{0,31}$'),
      drop constraint api_keys_pkey,
      add primary key (user_id, name);
    grant delete on api_keys to clearbatch_api;
    alter table auth_challenges drop constraint auth_challenges_action_check;
    alter table auth_challenges add constraint auth_challenges_action_check check (action in ('rotate_api_key', 'create_api_key'));
    alter table connection_switches add column key_name text
  `.execute(db)
}

/** Only the keys named `default` remain. */
export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table connection_switches drop column key_name;
    delete from auth_challenges where action = 'create_api_key';
    alter table auth_challenges drop constraint auth_challenges_action_check;
    alter table auth_challenges add constraint auth_challenges_action_check check (action in ('rotate_api_key'));
    revoke delete on api_keys from clearbatch_api;
    delete from api_keys where name <> 'default';
    alter table api_keys drop constraint api_keys_pkey, drop column name, add primary key (user_id)
  `.execute(db)
}
