/**
 * The rows of the journal are stored once, in the groups of the engine. `journal_spans` finds them by shard and sequence, and the table `journal`
 * becomes a view.
 */
import { type Kysely, sql } from 'kysely'
import { GUARDS } from './0100-exchange.ts'

/**
 * Groups that contain rows of a shard: the rows behind its span before, up to `last_seq`, are in these groups. A write of the tables of readers has one
 * span for each shard.
 */
const SPANS = `
  create table journal_spans (
    shard text,
    last_seq bigint,
    first_group bigint not null,
    last_group bigint not null,
    primary key (shard, last_seq)
  );
  insert into journal_spans (shard, last_seq, first_group, last_group)
    select placed.shard, max(placed.seq), number, number
    from engine_tables t join engine_groups g on g.number <= t.written
    cross join lateral json_to_recordset(g.rows) placed (shard text, seq bigint)
    group by placed.shard, number;
`

/** Commands with effects in several markets: the sequence that each shard has to reach, by the command's sequence in the journal of the accounts. */
const SPANNED_COMMANDS = `
  create table spanned_commands (
    seq bigint primary key,
    shards json not null
  );
  insert into spanned_commands (seq, shards)
    select seq, row -> 'shards' from journal where shard = 'accounts' and row ->> 'kind' = 'command_spanned';
`

/** Other writers could append to the table; no statement can append to the view. */
const JOURNAL = `
  drop trigger await_foreign_rows on engine_ownership;
  drop trigger refuse_foreign_rows on shards;
  drop table journal;
  drop function await_foreign_rows();
  drop function refuse_foreign_rows();
  create view journal as
    select placed.shard, placed.seq, placed.row
    from engine_tables t join engine_groups g on g.number <= t.written
    cross join lateral json_to_recordset(g.rows) placed (shard text, seq bigint, "row" json);
`

/** See `advance_engine_tables` of the first migration. \`heads\`: of each shard with rows in the groups, the last sequence. */
const FUNCTIONS = `
  drop function advance_engine_tables(bigint, bigint, bigint);
  create function advance_engine_tables(new_token bigint, from_number bigint, to_number bigint, heads json) returns void language plpgsql as $$
  begin
    perform from engine_ownership where token = new_token for share;
    if not found then
      raise exception 'the token % is not the current one', new_token using errcode = 'CB001';
    end if;
    update engine_tables set written = to_number where written = from_number;
    if not found then
      raise exception 'the tables do not contain exactly the groups up to %', from_number using errcode = 'CB001';
    end if;
    insert into journal_spans (shard, last_seq, first_group, last_group)
      select shard, seq, from_number + 1, to_number from json_to_recordset(heads) as head (shard text, seq bigint);
    insert into shards (shard, head)
      select shard, seq from json_to_recordset(heads) as head (shard text, seq bigint) where shard <> 'chain'
      on conflict (shard) do update set head = excluded.head;
  end $$;
`

const GRANTS = `
  grant select on spanned_commands to clearbatch_api;
  grant select on engine_groups, journal_spans to clearbatch_indexer;
  grant select, insert on journal_spans, spanned_commands to clearbatch_engine;
`

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statements of [SPANS, SPANNED_COMMANDS, JOURNAL, FUNCTIONS, GRANTS])
    await sql.raw(statements).execute(db)
}

const FORMER_FUNCTION = `
  drop function advance_engine_tables(bigint, bigint, bigint, json);
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
`

const FORMER_TABLE = `
  create table former_journal (
    shard text,
    seq bigint,
    row json not null,
    constraint journal_pkey primary key (shard, seq)
  );
  insert into former_journal (shard, seq, row) select shard, seq, row from journal;
  drop view journal;
  alter table former_journal rename to journal;
  drop table journal_spans, spanned_commands;
  revoke select on engine_groups from clearbatch_indexer;
  grant select on journal to clearbatch_api, clearbatch_keeper, clearbatch_indexer;
  grant select, insert on journal to clearbatch_engine;
`

export async function down(db: Kysely<unknown>): Promise<void> {
  for (const statements of [FORMER_FUNCTION, FORMER_TABLE, GUARDS]) await sql.raw(statements).execute(db)
}
