/**
 * The tables that follow what the engine has of the chain, of keys and of requests, with the columns that it writes. They come after the tables of
 * `written-tables.ts`, to which they refer.
 */
import { toJson } from './json.ts'
import type { Statement } from './round-trip.ts'
import { type Columns, stateTable } from './state-tables.ts'

export const fundingStatesTable = stateTable({
  name: 'funding_states',
  key: { market_id: 'integer', action_id: 'bigint' },
  changing: {
    as_of: 'bigint',
    funding_index: 'numeric',
    rate: 'numeric',
    valid_from: 'bigint',
    valid_until: 'bigint',
  },
})

export const liquidationsTable = stateTable({
  name: 'liquidations',
  key: { market_id: 'integer', user_id: 'bigint' },
  changing: {
    number: 'bigint',
    stage: 'text',
    start_size: 'bigint',
    order_id: 'text',
    widenings: 'integer',
    resting: 'bigint',
    queue_no: 'bigint',
    attempts: 'integer',
    failed_kind: 'text',
    retry_at: 'bigint',
    seen_seq: 'bigint',
    started_at: 'bigint',
  },
})

export const attemptsTable = stateTable({
  name: 'adjustment_attempts',
  key: { adjustment_id: 'text' },
  fixed: {
    market_id: 'integer',
    user_id: 'bigint',
    digest: 'text',
    kind: 'text',
    nonce: 'bigint',
    request: 'jsonb',
    hold: 'numeric',
    pays: 'numeric',
    cancelled_orders: 'integer',
    created_at: 'bigint',
  },
  changing: {
    status: 'text',
    held: 'numeric',
    as_of: 'bigint',
    relayer: 'text',
    relayer_nonce: 'bigint',
    tx_hash: 'text',
    moved: 'numeric',
    max_removable: 'numeric',
    gas_used: 'bigint',
    failure_kind: 'text',
    failure_reason: 'text',
    seq: 'bigint',
    updated_at: 'bigint',
  },
})

export const usedNoncesTable = stateTable({
  name: 'used_margin_nonces',
  key: { market_id: 'integer', user_id: 'bigint', nonce: 'numeric' },
})

export const nonceFloorsTable = stateTable({
  name: 'margin_nonce_floors',
  key: { market_id: 'integer', account: 'text' },
  changing: { minimum: 'numeric', block: 'bigint' },
})

export const sessionKeysTable = stateTable({
  name: 'session_keys',
  key: { owner: 'text', key: 'text' },
  changing: {
    permissions: 'integer',
    registered_at: 'bigint',
    expires_at: 'bigint',
    revoked_at: 'bigint',
    block: 'bigint',
  },
})

export const forwarderNoncesTable = stateTable({
  name: 'forwarder_nonces',
  key: { signer: 'text' },
  changing: { next_nonce: 'bigint', block: 'bigint' },
})

export const relaysTable = stateTable({
  name: 'relay_operations',
  key: { operation_id: 'text' },
  fixed: {
    user_id: 'bigint',
    kind: 'text',
    session_key: 'text',
    market_id: 'integer',
    minimum: 'numeric',
    owner: 'text',
    target: 'text',
    gas: 'bigint',
    nonce: 'bigint',
    deadline: 'bigint',
    data: 'text',
    signature: 'text',
    created_at: 'bigint',
  },
  changing: {
    status: 'text',
    failure: 'text',
    reason: 'text',
    relayer: 'text',
    relayer_nonce: 'bigint',
    tx_hash: 'text',
    block: 'bigint',
    updated_at: 'bigint',
  },
})

export const relayersTable = stateTable({
  name: 'relayers',
  key: { address: 'text', chain_id: 'bigint' },
  fixed: { lane: 'text' },
  changing: { next_nonce: 'bigint' },
})

export const switchesTable = stateTable({
  name: 'cancel_switches',
  key: { user_id: 'bigint' },
  changing: { timeout_seconds: 'integer', armed_at: 'bigint', fire_at: 'bigint' },
})

/** `fire_at` is counted from now: renewals are the engine's, and in no table. */
const PUT_CONNECTION_SWITCHES = `
  insert into connection_switches (connection_id, user_id, timeout_seconds, key_name, fire_at)
  select connection_id, user_id, timeout_seconds, key_name,
    (extract(epoch from clock_timestamp()) * 1000)::bigint + timeout_seconds * 1000::bigint
  from json_to_recordset($1::json) as x (connection_id text, user_id bigint, timeout_seconds integer, key_name text)
  on conflict (connection_id) do update set
    user_id = excluded.user_id, timeout_seconds = excluded.timeout_seconds, key_name = excluded.key_name, fire_at = excluded.fire_at
`

export const connectionSwitchesTable = {
  ...stateTable({ name: 'connection_switches', key: { connection_id: 'text' } }),
  put: (rows: readonly Columns[]): Statement => ({
    name: 'state-put-connection_switches',
    text: PUT_CONNECTION_SWITCHES,
    values: [toJson(rows)],
  }),
}

export const firedSwitchesTable = stateTable({
  name: 'fired_switches',
  key: { user_id: 'bigint', fired_at: 'bigint' },
})

/** The answer to a repeated command. See `ClientRequestsTable`. */
export const clientRequestsTable = stateTable({
  name: 'client_requests',
  key: { user_id: 'bigint', client_request_id: 'text' },
  changing: { digest: 'bytea', answer: 'text', created_at: 'bigint' },
})

export const blocksTable = stateTable({
  name: 'chain_blocks',
  key: { number: 'bigint' },
  changing: { hash: 'text', parent_hash: 'text', timestamp: 'bigint' },
})

export const mismatchesTable = stateTable({
  name: 'settlement_mismatches',
  key: { tx_hash: 'text', failure_kind: 'text' },
  fixed: {
    market_id: 'integer',
    block: 'bigint',
    batch_id: 'bigint',
    part: 'integer',
    failure_reason: 'text',
    found_at: 'bigint',
  },
})

/** The bookmark of a command over several markets names its sequence in the journal of the accounts. */
export const spannedCommandsTable = stateTable({
  name: 'spanned_commands',
  key: { seq: 'bigint' },
  fixed: { shards: 'json' },
})

/** Blocks that have left the chain. */
const REMOVE_BLOCKS = 'delete from chain_blocks where number = any($1::bigint[])'

export const removeBlocks = (numbers: readonly number[]): Statement => ({
  name: 'state-remove-chain_blocks',
  text: REMOVE_BLOCKS,
  values: [numbers],
})

/** The row exists: the indexer inserts it before the first block. */
export const setNextBlock = (nextBlock: number): Statement => ({
  name: 'state-next-block',
  text: 'update chain_progress set next_block = $1::bigint',
  values: [nextBlock],
})

export const setPauseEnd = (endsAt: number): Statement => ({
  name: 'state-pause-end',
  text: 'update chain_progress set bank_pause_ends_at = $1::bigint',
  values: [endsAt],
})

/**
 * Keeps reports as evidence, with the readings behind them. Of a report that a row names by its time alone, price and signatures are those that the
 * publisher has stored.
 */
const KEEP_REPORTS = `
  insert into used_reports (market_id, feed, observed_at, price, signatures, readings)
  select x.market_id, x.feed, x.observed_at, coalesce(x.price, r.price), coalesce(x.signatures, r.signatures), coalesce(r.readings, '[]')
  from json_to_recordset($1::json) as x (market_id integer, feed text, observed_at bigint, price numeric, signatures text)
  left join lateral (
    select * from recent_reports
    where market_id = x.market_id and feed = x.feed and observed_at = x.observed_at limit 1
  ) r on true
  where coalesce(x.signatures, r.signatures) is not null
  on conflict do nothing
`

export const keepReports = (rows: readonly Columns[]): Statement => ({
  name: 'state-keep-reports',
  text: KEEP_REPORTS,
  values: [toJson(rows)],
})
