import { type Kysely, sql } from 'kysely'

/**
 * The label of the program that has built an order, which no signature covers, with the order and its fills; and the sums of each builder by day
 * (UTC): the notional of mined fills in wei, their number, and the accepted orders. Pages of a day are ordered by volume, pages of a builder by day.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table orders add builder text;
    alter table read.orders add builder text;
    alter table read.fills add builder text;
    create table read.builder_days (
      builder text not null,
      day bigint not null,
      volume numeric not null,
      fills bigint not null,
      orders bigint not null,
      primary key (builder, day)
    );
    create index read_builder_days_by_volume on read.builder_days (day, volume desc, builder);
    grant insert, update, delete, truncate on read.builder_days to clearbatch_indexer;
    grant select on read.builder_days to clearbatch_api, clearbatch_indexer
  `.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`
    drop table read.builder_days;
    alter table read.fills drop builder;
    alter table read.orders drop builder;
    alter table orders drop builder
  `.execute(db)
}
