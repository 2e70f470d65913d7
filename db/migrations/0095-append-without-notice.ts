import { type Kysely, sql } from 'kysely'

const append = (notice: string): string => `
  create or replace function append_engine_group(
    new_number bigint, new_token bigint, new_version integer, new_rows json, new_before text, new_digest text
  ) returns void language plpgsql as $$
  begin
    -- The lock makes a takeover wait for the commit.
    perform from engine_ownership where token = new_token for share;
    if not found then
      raise exception 'the token % is not the current one', new_token using errcode = 'CB001';
    end if;
    insert into engine_groups (number, token, version, rows, before, digest)
    select new_number, new_token, new_version, new_rows, new_before, new_digest
    where new_number = 1 + coalesce((select max(number) from engine_groups), 0)
    on conflict (number) do nothing;
    if not found then
      raise exception 'the group % does not follow the head', new_number using errcode = 'CB001';
    end if;
    ${notice}
  end $$;
`

/**
 * A commit with a notification waits for every other one, its wait for the disk included, and wakes all listening sessions. Followers apply what the tables
 * contain and poll them, so that nothing listened to the channel of appends.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw(append('')).execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql.raw(append(`perform pg_notify('engine', new_number::text);`)).execute(db)
}
