import { type Kysely, sql } from 'kysely'

/**
 * Rows of another writer would take the sequences of the engine's next rows, and the engine could store nothing more. Once an engine has stored
 * a group or owned the exchange, only a transaction that stores a group of the engine may append to the journal, whatever the role of its connection.
 */
const REFUSE = `
  create function refuse_foreign_rows() returns trigger language plpgsql
  security definer set search_path = pg_catalog, public, pg_temp as $$
  declare
    writer xid;
  begin
    -- A group of the transaction is the newest that it sees: the next one would wait for the same number.
    select xmin into writer from engine_groups order by number desc limit 1;
    if not found and (select token from engine_ownership) = 0 then
      return null;
    end if;
    if writer is distinct from pg_current_xact_id()::xid then
      raise exception 'an engine owns this exchange: commands that change it go through ENGINE_URL' using errcode = 'CB002';
    end if;
    return null;
  end $$;
  create trigger refuse_foreign_rows before insert on journal for each statement execute function refuse_foreign_rows();
  create trigger refuse_foreign_rows before insert on shards for each statement execute function refuse_foreign_rows();
`

/** The first takeover waits for transactions that have appended before it; those that append after it find its token. */
const AWAIT = `
  create function await_foreign_rows() returns trigger language plpgsql
  security definer set search_path = pg_catalog, public, pg_temp as $$
  begin
    lock table journal in share mode;
    return new;
  end $$;
  create trigger await_foreign_rows before update on engine_ownership for each row when (old.token = 0 and new.token > 0)
  execute function await_foreign_rows();
`

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw(REFUSE + AWAIT).execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`
      drop trigger refuse_foreign_rows on journal;
      drop trigger refuse_foreign_rows on shards;
      drop trigger await_foreign_rows on engine_ownership;
      drop function refuse_foreign_rows, await_foreign_rows;
    `)
    .execute(db)
}
