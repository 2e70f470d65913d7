import { type Kysely, sql } from 'kysely'

/**
 * - Requests and payouts of withdrawals, for their status.
 * - What each fill moved in the free balance, so that transactions and fills add up to it. The indexer fills the table again.
 * - The network address of a faucet request, and access by account and address for the faucet's limits. Null: of an older request.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table read.withdrawal_events (
      id text primary key, user_id bigint not null, is_payout boolean not null, amount numeric not null,
      tx_hash text not null, log_index integer not null, block bigint not null, at bigint not null
    );
    create index read_withdrawal_events_of_user on read.withdrawal_events (user_id, is_payout, block, log_index);
    grant insert, update, delete, truncate on read.withdrawal_events to clearbatch_indexer;
    grant select on read.withdrawal_events to clearbatch_api, clearbatch_indexer;
    alter table read.fills add column available_margin_delta numeric;
    alter table faucet_requests add column network_address text;
    create index faucet_requests_of_user on faucet_requests (user_id, created_at);
    create index faucet_requests_of_address on faucet_requests (network_address, created_at);
    grant insert (network_address) on faucet_requests to clearbatch_api
  `.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`
    drop index faucet_requests_of_address, faucet_requests_of_user;
    alter table faucet_requests drop column network_address;
    alter table read.fills drop column available_margin_delta;
    drop table read.withdrawal_events;
    delete from read.places where projection = 'withdrawals'
  `.execute(db)
}
