import { type Kysely, sql } from 'kysely'

/** A page of one kind in one market is found by one index: an account may have few rows of a frequent kind in a market, and the reverse. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    drop index read.read_ledger_transactions_in_market;
    create index read_ledger_transactions_in_market on read.ledger_transactions (user_id, market_id, type, at, id)
      where market_id is not null
  `.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`
    drop index read.read_ledger_transactions_in_market;
    create index read_ledger_transactions_in_market on read.ledger_transactions (user_id, market_id, at, id)
      where market_id is not null
  `.execute(db)
}
