import { type Kysely, sql } from 'kysely'

/** The transaction that writes the tables changes `written`, by which their rows are known for the engine's. */
const refuseForeign = (writer: string): string => `
  create or replace function refuse_foreign_rows() returns trigger language plpgsql
  security definer set search_path = pg_catalog, public, pg_temp as $$
  declare
    writer xid;
  begin
    if (select token from engine_ownership) = 0 and not exists (select from engine_groups) then
      return null;
    end if;
    ${writer}
    if writer is distinct from pg_current_xact_id()::xid then
      raise exception 'an engine owns this exchange: commands that change it go through ENGINE_URL' using errcode = 'CB002';
    end if;
    return null;
  end $$;
`

/**
 * The tables of readers follow the journal in transactions of their own. `written` is the last group that they contain: it changes in the transaction that
 * writes them, under the lock of the token, so that a takeover waits for it like for an append. The inputs of a batch are in no row of the journal, so that
 * the next owner could not write them: they leave the table of batches and are stored with the group.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table engine_tables (
      is_only boolean primary key default true check (is_only),
      written bigint not null
    );
    insert into engine_tables (written) select coalesce(max(number), 0) from engine_groups;
    create function advance_engine_tables(new_token bigint, from_number bigint, to_number bigint) returns void language plpgsql as $$
    begin
      perform from engine_ownership where token = new_token for share;
      if not found then
        raise exception 'the token % is not the current one', new_token using errcode = 'CB001';
      end if;
      update engine_tables set written = to_number where written = from_number;
      if not found then
        raise exception 'the tables do not contain exactly the groups up to %', from_number using errcode = 'CB001';
      end if;
    end $$;
    grant select on engine_tables to clearbatch_engine, clearbatch_api;
    grant update (written) on engine_tables to clearbatch_engine;
    grant select on engine_groups to clearbatch_api;
    create table batch_inputs (
      market_id integer not null,
      batch_id bigint not null,
      as_of bigint not null,
      inputs bytea not null,
      primary key (market_id, batch_id)
    );
    alter table batch_inputs alter column inputs set storage external;
    create index batch_inputs_by_age on batch_inputs (as_of);
    insert into batch_inputs select market_id, batch_id, as_of, inputs from batches where inputs is not null;
    alter table batches drop column inputs;
    grant select on batch_inputs to clearbatch_engine, clearbatch_api, clearbatch_keeper;
    grant insert, update on batch_inputs to clearbatch_engine;
    grant delete on batch_inputs to clearbatch_keeper
  `.execute(db)
  await sql.raw(refuseForeign('select xmin into writer from engine_tables;')).execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(refuseForeign('select xmin into writer from engine_groups order by number desc limit 1;'))
    .execute(db)
  await sql`
    revoke select on engine_groups from clearbatch_api;
    alter table batches add column inputs bytea;
    alter table batches alter column inputs set storage external;
    update batches b set inputs = i.inputs from batch_inputs i where i.market_id = b.market_id and i.batch_id = b.batch_id;
    create index batches_with_inputs on batches (as_of) where inputs is not null;
    grant update (inputs) on batches to clearbatch_keeper;
    drop table batch_inputs;
    drop function advance_engine_tables;
    drop table engine_tables
  `.execute(db)
}
