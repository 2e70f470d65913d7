import { type Kysely, sql } from 'kysely'

/**
 * The proof of a batch is made from its stored inputs, which the keeper deletes after a time. The key of its salts is generated here, by
 * the database itself: 244 random bits.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table batches alter column inputs drop not null;
    update batches set inputs = null where inputs = '{}';
    create index batches_with_inputs on batches (as_of) where inputs is not null;
    create index orders_triggered on orders (market_id, seq) where triggered is not null;

    create table proof_keys (
      is_only boolean primary key default true check (is_only),
      key bytea not null
    );
    insert into proof_keys (key)
    select sha256(convert_to(gen_random_uuid()::text || gen_random_uuid()::text, 'UTF8'));

    grant select on batches, proof_keys to clearbatch_api;
    grant update (inputs) on batches to clearbatch_keeper
  `.execute(db)
}

/** Batches without inputs get empty ones, which the way back up deletes again. */
export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`
    revoke update (inputs) on batches from clearbatch_keeper;
    revoke select on batches from clearbatch_api;
    drop table proof_keys;
    drop index orders_triggered;
    drop index batches_with_inputs;
    update batches set inputs = '{}' where inputs is null;
    alter table batches alter column inputs set not null
  `.execute(db)
}
