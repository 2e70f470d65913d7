import { type Kysely, sql } from 'kysely'

/**
 * The inputs of a batch are packed by the keeper: as `jsonb`, Postgres parsed and compressed hundreds of kilobytes in a transaction that
 * holds the market's lock. Inputs that are stored already stay JSON.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table batches alter column inputs type bytea using convert_to(inputs::text, 'UTF8');
    alter table batches alter column inputs set storage external
  `.execute(db)
}

/** Postgres cannot unpack inputs: batches that were packed lose theirs. */
export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table batches alter column inputs type jsonb using
      case when get_byte(inputs, 0) = 123 then convert_from(inputs, 'UTF8')::jsonb end
  `.execute(db)
}
