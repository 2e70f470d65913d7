/**
 * The tables that follow the state of the engine, with the columns that it writes. Columns that are not named belong to other writers. Each of them is
 * inserted before the tables that refer to it, in the order of this file.
 */

import { toJson } from './json.ts'
import type { Statement } from './round-trip.ts'
import { type Columns, stateTable } from './state-tables.ts'

/** The sequence follows, so that a database whose engine is switched off assigns no id twice. */
const PUT_USERS = `
  with put as (
    insert into users (user_id, address, created_at) overriding system value
    select * from json_to_recordset($1::json) as x (user_id bigint, address text, created_at bigint)
    on conflict (user_id) do nothing
    returning user_id
  )
  select setval('users_user_id_seq', greatest(max(user_id), (select last_value from users_user_id_seq))) from put having count(*) > 0
`

export const putUsers = (rows: readonly Columns[]): Statement => ({
  name: 'state-put-users',
  text: PUT_USERS,
  values: [toJson(rows)],
})

export const accountsTable = stateTable({
  name: 'accounts',
  key: { user_id: 'bigint' },
  changing: { free: 'numeric', pending_withdrawal: 'numeric', reserved: 'numeric' },
})

/** What operators and the chain set of a market. */
export const marketsTable = stateTable({
  name: 'markets',
  key: { market_id: 'integer' },
  fixed: { symbol: 'text', kind: 'text', trader: 'text', spec: 'jsonb' },
  changing: {
    mode: 'text',
    terms: 'jsonb',
    fee_periods: 'jsonb',
    price_protection: 'numeric',
    next_price_protection: 'numeric',
    next_price_protection_at: 'bigint',
    impact_notional: 'numeric',
    calendar: 'text',
    final_report: 'jsonb',
    ended: 'jsonb',
    expires_at: 'bigint',
    settling_at: 'bigint',
    dispute_window: 'bigint',
    backstop: 'text',
    backstop_cap: 'numeric',
  },
})

/** What batches, marks and actions change of a market. The row exists. */
export const marketProgress = stateTable({
  name: 'markets',
  key: { market_id: 'integer' },
  changing: {
    last_batch_id: 'bigint',
    last_batch_head: 'bigint',
    last_as_of: 'bigint',
    last_price: 'bigint',
    last_price_at: 'bigint',
    last_action_id: 'bigint',
    held_mark: 'numeric',
    reserved_fee: 'numeric',
    reserving_after: 'bigint',
  },
  suffix: 'progress',
})

export const averagesTable = stateTable({
  name: 'price_averages',
  key: { market_id: 'integer' },
  changing: { basis: 'numeric', basis_at: 'bigint', premium_at: 'bigint', premium: 'jsonb' },
})

export const positionsTable = stateTable({
  name: 'positions',
  key: { user_id: 'bigint', market_id: 'integer' },
  changing: {
    size: 'bigint',
    entry_notional: 'numeric',
    folded_margin: 'numeric',
    leverage: 'integer',
    matched_size: 'bigint',
    matched_entry_notional: 'numeric',
    matched_folded_margin: 'numeric',
    matched_leverage: 'integer',
  },
})

export const ordersTable = stateTable({
  name: 'orders',
  key: { order_id: 'text' },
  fixed: {
    market_id: 'integer',
    user_id: 'bigint',
    maker: 'text',
    signer: 'text',
    hash: 'text',
    signature: 'text',
    salt: 'bigint',
    side: 'text',
    type: 'text',
    price: 'bigint',
    quantity: 'bigint',
    trigger: 'bigint',
    leverage: 'integer',
    reduce_only: 'boolean',
    expiration: 'bigint',
    alive_until: 'bigint',
    accepted_at: 'bigint',
    forced: 'boolean',
    client_order_id: 'text',
  },
  changing: {
    seq: 'bigint',
    status: 'text',
    status_reason: 'text',
    note: 'text',
    filled: 'bigint',
    settling: 'bigint',
    closing_reason: 'text',
    closed_by: 'text',
    openable: 'bigint',
    reserved_price: 'bigint',
    reserved: 'numeric',
    held: 'numeric',
    partial_slot: 'integer',
    triggered: 'jsonb',
    ended_at: 'bigint',
  },
})

/** A batch is inserted by the row that clears it. */
export const batchesTable = stateTable({
  name: 'batches',
  key: { market_id: 'integer', batch_id: 'bigint' },
  fixed: {
    as_of: 'bigint',
    price: 'bigint',
    lo: 'bigint',
    hi: 'bigint',
    volume: 'bigint',
    demand: 'bigint',
    supply: 'bigint',
    rule: 'text',
    parts: 'integer',
    oracle_price: 'numeric',
    oracle_at: 'bigint',
    oracle_signatures: 'text',
    maker_fee: 'numeric',
    taker_fee: 'numeric',
    inputs: 'bytea',
    created_at: 'bigint',
  },
  changing: { status: 'text' },
})

export const fillsTable = stateTable({
  name: 'fills',
  key: { fill_id: 'text' },
  fixed: {
    market_id: 'integer',
    batch_id: 'bigint',
    part: 'integer',
    place: 'integer',
    order_id: 'text',
    user_id: 'bigint',
    side: 'text',
    steps: 'bigint',
    taker_steps: 'bigint',
    partial_slot: 'integer',
    held: 'numeric',
  },
  changing: { status: 'text' },
})

export const actionsTable = stateTable({
  name: 'actions',
  key: { market_id: 'integer', queue_no: 'bigint' },
  fixed: {
    kind: 'text',
    batch_id: 'bigint',
    part: 'integer',
    payload: 'jsonb',
    touches: 'bigint[]',
    as_of: 'bigint',
    created_at: 'bigint',
  },
  changing: {
    status: 'text',
    action_id: 'bigint',
    relayer: 'text',
    nonce: 'bigint',
    failure: 'text',
  },
})

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
  insert into connection_switches (connection_id, user_id, timeout_seconds, fire_at)
  select connection_id, user_id, timeout_seconds, (extract(epoch from clock_timestamp()) * 1000)::bigint + timeout_seconds * 1000::bigint
  from json_to_recordset($1::json) as x (connection_id text, user_id bigint, timeout_seconds integer)
  on conflict (connection_id) do update set
    user_id = excluded.user_id, timeout_seconds = excluded.timeout_seconds, fire_at = excluded.fire_at
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

/** A block that has left the chain, with what the indexer had recorded of it. */
const REMOVE_BLOCKS = `
  with steps as (delete from chain_steps where block = any($1::bigint[])),
  logs as (delete from chain_logs where block = any($1::bigint[]))
  delete from chain_blocks where number = any($1::bigint[])
`

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
