import { type Kysely, sql } from 'kysely'

/**
 * The cost of a statement must not grow with the age of the exchange.
 * - Actions are found by their part and by their nonce, transactions by relayer and nonce; signed faucet requests without the finished ones.
 * - The primary key of `resting` starts with the account: cancels over all markets find the markets in which the account has orders. The
 *   indexer and the keeper read it for that.
 * - The indexer starts from the settlements in flight, and needs the purpose of their transactions.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create index actions_of_part on actions (market_id, batch_id, part);
    create index actions_by_nonce on actions (relayer, nonce) where nonce is not null;
    drop index relayer_transactions_by_nonce;
    create index relayer_transactions_by_nonce on relayer_transactions (relayer, nonce, chain_id);
    create index faucet_requests_signed on faucet_requests (request_id) where status = 'SIGNED';
    create index positions_of_market on positions (market_id);
    alter table resting drop constraint resting_pkey, add primary key (user_id, market_id);
    grant select on resting to clearbatch_keeper, clearbatch_indexer;
    grant select (purpose) on relayer_transactions to clearbatch_indexer
  `.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`
    revoke select (purpose) on relayer_transactions from clearbatch_indexer;
    revoke select on resting from clearbatch_keeper, clearbatch_indexer;
    alter table resting drop constraint resting_pkey, add primary key (market_id, user_id);
    drop index positions_of_market, faucet_requests_signed, relayer_transactions_by_nonce, actions_by_nonce, actions_of_part;
    create index relayer_transactions_by_nonce on relayer_transactions (relayer, chain_id, nonce)
  `.execute(db)
}
