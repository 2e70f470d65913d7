import { type Kysely, sql } from 'kysely'

/** The position of a fill inside its part: a public id of the fill that does not reveal its order. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table read.fills add column place integer;
    update read.fills r set place = f.place from fills f where f.fill_id = r.fill_id;
    update read.fills r set place = 1000000 + n.place from (
      select fill_id, row_number() over (partition by market_id, batch_id, part order by fill_id) as place
      from read.fills where place is null
    ) n where n.fill_id = r.fill_id;
    alter table read.fills alter column place set not null;
    drop index read.read_fills_of_part;
    create index read_fills_of_part on read.fills (market_id, batch_id, part, place);
  `.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`
    drop index read.read_fills_of_part;
    alter table read.fills drop column place;
    create index read_fills_of_part on read.fills (market_id, batch_id, part)
  `.execute(db)
}
