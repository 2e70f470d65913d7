import { type Kysely, sql } from 'kysely'

/**
 * Each projection has its own place in each shard's journal, and a version, so that one of them can be filled again while the others
 * serve. `fill_to` is the head of the journal when its tables were emptied; null once they are complete. The table gets another name, so that
 * an indexer of the earlier version, which expects one row per shard, fails instead of projecting each journal row several times.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table read.projection rename to places;
    alter table read.places drop constraint projection_pkey, add column projection text,
      add column version integer not null default 1, add column fill_to bigint;
    insert into read.places (shard, projection, epoch, seq)
      select shard, name, epoch, seq from read.places, unnest('{users,markets,batches,balances,orders}'::text[]) name;
    delete from read.places where projection is null;
    alter table read.places alter column projection set not null, alter column version drop default,
      add primary key (shard, projection);
    create index read_places_filling on read.places (projection, shard) where fill_to is not null
  `.execute(db)
}

/** The earlier version has one place per shard. */
export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`
    do $$
    begin
      if exists (select from read.places group by shard having min(seq) <> max(seq) or count(fill_to) > 0) then
        raise exception 'a projection is being filled: stop writers, run the indexer until all are at one place, and migrate then';
      end if;
    end $$;
    drop index read.read_places_filling;
    alter table read.places drop constraint places_pkey;
    delete from read.places p using read.places q where q.shard = p.shard and q.projection < p.projection;
    alter table read.places drop column projection, drop column version, drop column fill_to, add primary key (shard);
    alter table read.places rename constraint places_pkey to projection_pkey;
    alter table read.places rename to projection
  `.execute(db)
}
