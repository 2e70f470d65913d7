/**
 * Tables and columns that the engine writes; unnamed columns belong to other writers. In this order, each table is
 * inserted before tables that refer to it.
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

/** Columns of a market that operators and the chain set. */
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

/** Columns of a market that batches, marks and actions change. The row exists. */
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
    time_in_force: 'text',
    post_only: 'boolean',
    unused: 'bigint',
    replaces: 'text',
    bracket: 'bigint',
    builder: 'text',
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
    created_at: 'bigint',
  },
  changing: { status: 'text' },
})

/** Inputs of batches, packed, in hexadecimal digits behind `\\x`. Stored with the group that clears the batch. */
export const batchInputsTable = stateTable({
  name: 'batch_inputs',
  key: { market_id: 'integer', batch_id: 'bigint' },
  changing: { as_of: 'bigint', inputs: 'bytea' },
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
