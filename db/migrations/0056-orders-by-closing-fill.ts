import { type Kysely, sql } from 'kysely'

/**
 * The orders that left the book with the fill that closed their position, until they end: settling a part asks for them, and an account may have
 * thousands of other live orders in the market.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create index orders_by_closing_fill on orders (closed_by) where closed_by is not null and ended_at is null`.execute(
    db,
  )
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`drop index orders_by_closing_fill`.execute(db)
}
