import { type Kysely, sql } from 'kysely'
import { REST_TRIGGERS } from './0001-write-side.ts'

/**
 * The engine has the sums of each account's orders, and finds fills and orders in its own state. Without these triggers and indexes an order that is placed
 * and cancelled costs the database half as much.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    drop trigger rest_inserted on orders;
    drop trigger rest_updated on orders;
    drop function rest_inserted_orders, rest_updated_orders;
    drop table resting;
    drop index orders_by_closing_fill, fills_of_order;
    alter table fills drop constraint fills_market_id_batch_id_part_place_key
  `.execute(db)
}

/** The sums come from the live orders. */
export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table fills add unique (market_id, batch_id, part, place);
    create index fills_of_order on fills (order_id);
    create index orders_by_closing_fill on orders (closed_by) where closed_by is not null and ended_at is null
  `.execute(db)
  await sql`
    create table resting (
      market_id integer not null references markets,
      user_id bigint not null references users,
      orders integer not null,
      plain_long bigint not null,
      plain_short bigint not null,
      openable bigint not null,
      open_value numeric(78, 0) not null,
      reserved numeric(78, 0) not null,
      primary key (user_id, market_id)
    ) with (fillfactor = 50);
    insert into resting
      select market_id, user_id, count(*),
        coalesce(sum(quantity - filled - settling) filter (where in_book and side = 'LONG'), 0),
        coalesce(sum(quantity - filled - settling) filter (where in_book and side = 'SHORT'), 0),
        sum(openable), sum(openable::numeric * reserved_price), sum(reserved + held)
      from (select *, closing_reason is null and not reduce_only as in_book from orders where ended_at is null) o
      group by market_id, user_id;
    ${sql.raw(REST_TRIGGERS)}
    alter function rest_inserted_orders() security definer set search_path = pg_catalog, public, pg_temp;
    alter function rest_updated_orders() security definer set search_path = pg_catalog, public, pg_temp;
    grant select on resting to clearbatch_api, clearbatch_keeper, clearbatch_indexer
  `.execute(db)
}
