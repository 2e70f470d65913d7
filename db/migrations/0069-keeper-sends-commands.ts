import { type Kysely, sql } from 'kysely'

/** The keeper's workers send what changes the exchange to the engine, and share no markets. */
const FORMER_RIGHTS = {
  shards: 'update (head)',
  journal: 'insert',
  accounts: 'update (reserved)',
  markets: `
    update (mode, last_batch_id, last_action_id, last_as_of, last_price, last_price_at, last_batch_head, held_mark, reserved_fee, reserving_after)
  `,
  positions: `
    insert (user_id, market_id, matched_size, matched_entry_notional, matched_folded_margin, matched_leverage),
    update (matched_size, matched_entry_notional, matched_folded_margin, matched_leverage)
  `,
  orders: `
    insert (order_id, market_id, seq, user_id, maker, hash, salt, side, type, price, quantity, trigger, leverage, reduce_only, expiration, status,
      openable, reserved_price, reserved, accepted_at, alive_until, forced),
    update (seq, status, status_reason, note, settling, closing_reason, openable, reserved_price, reserved, held, partial_slot, ended_at, triggered,
      closed_by)
  `,
  batches: 'insert, update (inputs, status)',
  fills: 'insert, update (status)',
  actions: `
    insert (market_id, queue_no, kind, batch_id, part, as_of, status, created_at, payload, touches),
    update (status, action_id, relayer, nonce, failure)
  `,
  price_averages: 'insert, update',
  relayers: 'insert, update (next_nonce, registered_at)',
  engine_groups: 'insert',
  engine_ownership: 'update',
  engine_lease: 'update',
  engine_checkpoints: 'insert, update, delete',
  engine_checkpoint_chunks: 'insert, delete',
  relay_operations: 'update (status, failure, reason, relayer, relayer_nonce, tx_hash, updated_at)',
  cancel_switches: 'delete',
  connection_switches: 'delete',
  fired_switches: 'insert, delete',
  liquidations: `
    insert, delete, update (stage, order_id, widenings, queue_no, attempts, retry_at, resting, seen_seq, failed_kind)
  `,
  adjustment_attempts: `
    update (status, held, as_of, relayer, relayer_nonce, tx_hash, max_removable, failure_kind, failure_reason, seq, updated_at)
  `,
}

/** Workers delete the inputs of old batches, and note when a key was registered. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`
      drop table keepers;
      revoke insert, update, delete on ${Object.keys(FORMER_RIGHTS).join(', ')} from clearbatch_keeper;
      grant update (inputs) on batches to clearbatch_keeper;
      grant update (registered_at) on relayers to clearbatch_keeper;
    `)
    .execute(db)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table keepers (
      owner text primary key,
      expires_at bigint not null,
      capacity integer,
      is_late boolean not null,
      markets integer[] not null
    );
    grant select, insert, delete, update (expires_at, capacity, is_late, markets) on keepers to clearbatch_keeper
  `.execute(db)
  for (const [table, rights] of Object.entries(FORMER_RIGHTS))
    await sql.raw(`grant ${rights} on ${table} to clearbatch_keeper`).execute(db)
}
