import { type Kysely, sql } from 'kysely'

const INSERTED = `
  order_id, market_id, seq, user_id, maker, hash, salt, side, type, price, quantity, trigger, leverage, reduce_only, expiration,
  alive_until, status, openable, reserved_price, reserved, accepted_at, forced
`

/**
 * Liquidations. A forced order is an order that the keeper inserts and no trader has signed: it has neither signer nor signature, and its
 * salt numbers the market's forced orders, so that it does not take one of the trader's. `liquidations` has the running liquidations of
 * each market.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table orders add column forced boolean not null default false,
      alter column signer drop not null, alter column signature drop not null,
      drop constraint orders_market_id_maker_salt_key,
      add constraint orders_signed check (forced or (signer is not null and signature is not null));
    create unique index orders_by_salt on orders (market_id, maker, salt) where not forced;
    grant insert (${sql.raw(INSERTED)}) on orders to clearbatch_keeper;
    create table liquidations (
      market_id integer not null references markets,
      user_id bigint not null references users,
      number bigint not null,
      stage text not null,
      start_size bigint not null,
      order_id text references orders,
      widenings integer not null default 0,
      queue_no bigint,
      attempts integer not null default 0,
      retry_at bigint not null default 0,
      resting bigint not null default 0,
      seen_seq bigint not null,
      started_at bigint not null,
      primary key (market_id, user_id)
    );
    grant select, insert, delete, update (stage, order_id, widenings, resting, queue_no, attempts, retry_at, seen_seq)
      on liquidations to clearbatch_keeper;
    grant select on liquidations to clearbatch_api;
    alter table read.orders add column forced boolean not null default false, alter column signer drop not null
  `.execute(db)
}

/** Refuses while there are forced orders: the earlier version cannot settle their fills. */
export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table read.orders drop column forced, alter column signer set not null;
    drop table liquidations;
    revoke insert (${sql.raw(INSERTED)}) on orders from clearbatch_keeper;
    drop index orders_by_salt;
    alter table orders add constraint orders_market_id_maker_salt_key unique (market_id, maker, salt),
      drop constraint orders_signed, alter column signature set not null, alter column signer set not null,
      drop column forced
  `.execute(db)
}
