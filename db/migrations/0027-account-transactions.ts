import { type Kysely, sql } from 'kysely'

/**
 * A funding update pays every open position. Its payments are rows of the view, not of a table: they follow from the indexes of the updates
 * and from the stretches of time in which an account's size did not change. An update therefore costs one row, however many positions are
 * open. A stretch ends with a change of the position, whose own payment stands in its row; the stretch that has not ended is in
 * `funding_positions`. `number` counts a market's updates, and a stretch contains those after `from_number` up to `to_number`.
 */
const PAYMENT_ID = `u.market_id || '-' || lpad(u.action_id::text, 12, '0') || '-'`

/** Payments of the updates after `from_number`. The first counts from the index at which the stretch began. */
const paymentsOf = (stretch: string): string => `
  select ${PAYMENT_ID} || p.user_id as id, p.user_id, p.market_id,
    p.size * (case when u.number = p.from_number + 1 then p.from_index else u.previous_index end - u.funding_index) as payment,
    u.tx_hash, u.log_index, u.block, u.at
  from ${stretch} p join read.funding_indexes u on u.market_id = p.market_id
`

const TRANSACTIONS = `
  create view read.account_transactions as
    select id, user_id, type, amount, available_margin_delta, null::numeric as funding_payment_delta, market_id,
      tx_hash, log_index, block, at
    from read.ledger_transactions
    union all
    select id, user_id, 'funding_payment', abs(payment), 0, payment, market_id, tx_hash, log_index, block, at from (
      select id, user_id, market_id, payment, tx_hash, log_index, block, at from read.funding_spans
      union all
      ${paymentsOf('read.funding_spans')} and u.number > p.from_number and u.number <= p.to_number
      union all
      ${paymentsOf('read.funding_positions')} and u.number > p.from_number
    ) payments where payment <> 0
`

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table read.ledger_transactions (
      id text primary key, user_id bigint not null,
      type text not null check (type in ('deposit', 'withdrawal', 'adjust_leverage', 'funding_payment', 'add_margin', 'remove_margin',
        'liquidation', 'market_delisting_payout')),
      market_id integer, amount numeric not null, available_margin_delta numeric not null,
      tx_hash text not null, log_index integer not null, block bigint not null, at bigint not null
    );
    create index read_ledger_transactions_of_user on read.ledger_transactions (user_id, at, id);
    create index read_ledger_transactions_in_market on read.ledger_transactions (user_id, market_id, at, id) where market_id is not null;
    create table read.funding_indexes (
      market_id integer not null, number bigint not null, funding_index numeric not null, previous_index numeric not null,
      action_id bigint not null, tx_hash text not null, log_index integer not null, block bigint not null, at bigint not null,
      primary key (market_id, number)
    );
    create index read_funding_indexes_by_time on read.funding_indexes (market_id, at, number);
    create table read.funding_positions (
      user_id bigint not null, market_id integer not null, size bigint not null, from_index numeric not null, from_number bigint not null,
      primary key (user_id, market_id)
    );
    create table read.funding_spans (
      id text primary key, user_id bigint not null, market_id integer not null, size bigint not null,
      from_index numeric not null, from_number bigint not null, to_number bigint not null, has_updates boolean not null,
      payment numeric not null, tx_hash text not null, log_index integer not null, block bigint not null, at bigint not null
    );
    create index read_funding_spans_of_user on read.funding_spans (user_id, market_id, at, id) where payment <> 0;
    create index read_funding_spans_with_updates on read.funding_spans (user_id, market_id, from_number) where has_updates;
    ${sql.raw(TRANSACTIONS)};
    grant insert, update, delete, truncate on read.ledger_transactions, read.funding_indexes, read.funding_positions, read.funding_spans
      to clearbatch_indexer;
    grant select on read.ledger_transactions, read.funding_indexes, read.funding_positions, read.funding_spans, read.account_transactions
      to clearbatch_api, clearbatch_indexer
  `.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`
    drop view read.account_transactions;
    drop table read.funding_spans, read.funding_positions, read.funding_indexes, read.ledger_transactions;
    delete from read.places where projection = 'transactions'
  `.execute(db)
}
