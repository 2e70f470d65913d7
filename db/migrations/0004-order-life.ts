import { type Kysely, sql } from 'kysely'

/** Orders outside the book: triggers, session keys, dead-man switches; and the times of each stage of a fill. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table orders add column alive_until bigint, add column triggered jsonb;
    update orders set alive_until = expiration;
    alter table orders alter column alive_until set not null;
    create index orders_protective on orders (market_id, user_id)
      where ended_at is null and reduce_only and type not in ('MARKET', 'LIMIT');

    create table session_keys (
      owner text not null,
      key text not null,
      permissions integer not null,
      registered_at bigint not null,
      expires_at bigint not null,
      revoked_at bigint,
      block bigint not null,
      primary key (owner, key)
    );

    create table cancel_switches (
      user_id bigint primary key references users,
      timeout_seconds integer not null,
      armed_at bigint not null,
      fire_at bigint not null
    );
    create index cancel_switches_by_time on cancel_switches (fire_at);

    create table fired_switches (
      user_id bigint not null references users,
      fired_at bigint not null,
      primary key (user_id, fired_at)
    );

    alter table read.orders add column triggered jsonb;
    alter table read.fills
      add column action_id bigint,
      add column submitted_at bigint,
      add column mined_at bigint,
      add column confirmed_at bigint,
      add column failed_at bigint,
      add column failure text;
    create index read_order_events_of_user on read.order_events (user_id, at, shard, seq, place);
  `.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`
    drop index read.read_order_events_of_user;
    alter table read.fills
      drop column action_id, drop column submitted_at, drop column mined_at, drop column confirmed_at,
      drop column failed_at, drop column failure;
    alter table read.orders drop column triggered;
    drop table fired_switches, cancel_switches, session_keys;
    drop index orders_protective;
    alter table orders drop column alive_until, drop column triggered
  `.execute(db)
}
