import { type Kysely, sql } from 'kysely'

const TABLES = ['markets', 'read.markets']

/**
 * The width of a market's price protection, and the announced next one. Existing markets get the default of their kind, which they had
 * in effect: 0.01, 0.02 or 0.03, times 1e18.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const table of TABLES) {
    await sql
      .raw(
        `alter table ${table} add column price_protection numeric(78, 0), add column next_price_protection numeric(78, 0),
           add column next_price_protection_at bigint,
           add constraint announced_protection check ((next_price_protection is null) = (next_price_protection_at is null));
         update ${table} set price_protection =
           case kind when 'perpetual' then 10000000000000000 when 'future' then 20000000000000000 else 30000000000000000 end;
         alter table ${table} alter column price_protection set not null`,
      )
      .execute(db)
  }
}

export async function down(db: Kysely<unknown>): Promise<void> {
  for (const table of TABLES) {
    await sql
      .raw(
        `alter table ${table} drop column price_protection, drop column next_price_protection,
           drop column next_price_protection_at`,
      )
      .execute(db)
  }
}
