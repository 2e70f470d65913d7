import { type Kysely, sql } from 'kysely'

/**
 * The queue of actions gets kinds beside the parts of batches, with their arguments as JSON. `touches`: the accounts whose positions an
 * action may change, for the auction and for adjustments. `funding_states`: index and rate after each mined action that changed them.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table actions alter column batch_id drop not null, alter column part drop not null,
      add column payload jsonb, add column touches bigint[] not null default '{}', add column failure text,
      add constraint actions_of_kind check (
        (kind = 'settle_part') = (batch_id is not null and part is not null) and (kind = 'settle_part') = (payload is null)
      );
    create index actions_by_id on actions (market_id, action_id) where action_id is not null;
    create table funding_states (
      market_id integer not null references markets,
      action_id bigint not null,
      as_of bigint not null,
      funding_index numeric not null,
      rate numeric not null,
      valid_from bigint not null,
      valid_until bigint not null,
      primary key (market_id, action_id)
    );
    grant select on funding_states, actions to clearbatch_api;
    grant select on funding_states, users to clearbatch_keeper;
    grant insert (payload, touches), update (failure) on actions to clearbatch_keeper;
    grant select, insert, delete on funding_states to clearbatch_indexer;
    grant update (failure) on actions to clearbatch_indexer
  `.execute(db)
}

/** Actions of other kinds than parts of batches are deleted: the earlier version cannot read them. */
export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`
    revoke update (failure) on actions from clearbatch_indexer;
    revoke insert (payload, touches), update (failure) on actions from clearbatch_keeper;
    revoke select on users from clearbatch_keeper;
    revoke select on actions from clearbatch_api;
    drop table funding_states;
    drop index actions_by_id;
    delete from actions where kind <> 'settle_part';
    alter table actions drop constraint actions_of_kind, drop column payload, drop column touches, drop column failure,
      alter column batch_id set not null, alter column part set not null
  `.execute(db)
}
