import { type Kysely, sql } from 'kysely'

/** A keeper that starts reads the open positions of its market, not those of every account that ever traded there. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create index positions_open on positions (market_id) where matched_size <> 0`.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`drop index positions_open`.execute(db)
}
