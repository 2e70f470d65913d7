import { type Kysely, sql } from 'kysely'

/**
 * Each projection has its own place in each shard's journal, and a version, so that one of them can be filled again while the others
 * serve. `fill_to` is the head of the journal when its tables were emptied; null once they are complete.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table read.projection drop constraint projection_pkey, add column projection text,
      add column version integer not null default 1, add column fill_to bigint;
    insert into read.projection (shard, projection, epoch, seq)
      select shard, name, epoch, seq from read.projection, unnest('{users,markets,batches,balances,orders}'::text[]) name;
    delete from read.projection where projection is null;
    alter table read.projection alter column projection set not null, alter column version drop default,
      add primary key (shard, projection);
    create index read_projection_filling on read.projection (projection, shard) where fill_to is not null
  `.execute(db)
}

/** The earlier version has one place per shard. */
export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`
    do $$
    begin
      if exists (select from read.projection group by shard having min(seq) <> max(seq) or count(fill_to) > 0) then
        raise exception 'a projection is being filled: stop writers, run the indexer until all are at one place, and migrate then';
      end if;
    end $$;
    drop index read.read_projection_filling;
    alter table read.projection drop constraint projection_pkey;
    delete from read.projection p using read.projection q where q.shard = p.shard and q.projection < p.projection;
    alter table read.projection drop column projection, drop column version, drop column fill_to, add primary key (shard)
  `.execute(db)
}
