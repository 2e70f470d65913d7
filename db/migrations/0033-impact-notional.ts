import { type Kysely, sql } from 'kysely'

/** The notional at which a market's premium is measured, in wei; null: by the rule (`domain/prices/premium.ts`). */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table markets add column impact_notional numeric(78, 0)`.execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`alter table markets drop column impact_notional`.execute(db)
}
