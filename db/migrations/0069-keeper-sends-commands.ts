import { type Kysely, sql } from 'kysely'

const DECIDED = `
  shards, journal, accounts, markets, positions, orders, batches, fills, actions, price_averages, relayers, engine_groups, engine_ownership,
  engine_lease, engine_checkpoints, engine_checkpoint_chunks, relay_operations, cancel_switches, connection_switches, fired_switches, liquidations,
  adjustment_attempts
`

/** The keeper's workers send what changes the exchange to the engine, and share no markets. They delete the inputs of old batches, and note when a key was registered. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`
      drop table keepers;
      revoke insert, update, delete on ${DECIDED} from clearbatch_keeper;
      grant update (inputs) on batches to clearbatch_keeper;
      grant update (registered_at) on relayers to clearbatch_keeper;
    `)
    .execute(db)
}
