/**
 * Who writes and reads what: the rights of each process, as the migrations grant them and `test/db/roles.test.ts` checks them against
 * Postgres. The owner of the database writes the rest: it lists markets (`markets`, `shards`), announces their price protection, and edits
 * trading calendars (`calendar_exceptions`).
 */
import type { Database } from './schema.ts'

/** Each process connects with a login role that is a member of its group role. The engine, where it runs, writes what the others write without it. */
export const PROCESS_ROLES = {
  api: 'clearbatch_api',
  keeper: 'clearbatch_keeper',
  indexer: 'clearbatch_indexer',
  engine: 'clearbatch_engine',
} as const

export type Process = keyof typeof PROCESS_ROLES

/** Columns that may be inserted or updated. Locking a row takes the right to update one of its columns. */
export interface Rights<Column extends string = string> {
  readonly insert?: readonly Column[] | 'all'
  readonly update?: readonly Column[] | 'all'
  readonly delete?: true
  readonly truncate?: true
}

type Writers<Table extends keyof Database> = {
  readonly [Name in Process]?: Rights<keyof Database[Table] & string>
}

/** Written by the projector alone, which is part of the indexer. */
const PROJECTED = { indexer: { insert: 'all', update: 'all', delete: true, truncate: true } } as const

/** Rights of the engine on most tables: it inserts and changes rows. */
const PUT = { insert: 'all', update: 'all' } as const
const PUT_AND_DELETED = { insert: 'all', update: 'all', delete: true } as const

const USER = ['address', 'created_at'] as const
const MATCHED = [
  'matched_size',
  'matched_entry_notional',
  'matched_folded_margin',
  'matched_leverage',
] as const

export const WRITERS: { readonly [Table in keyof Database]: Writers<Table> } = {
  shards: {
    keeper: { update: ['head'] },
    indexer: { update: ['head', 'epoch'] },
    engine: PUT,
  },
  journal: {
    keeper: { insert: 'all' },
    indexer: { insert: 'all' },
    engine: { insert: 'all' },
  },
  users: { indexer: { insert: USER }, engine: PUT },
  api_keys: {
    api: {
      insert: 'all',
      update: [
        ...(['key_hash', 'prefix', 'created_at', 'scope', 'allowed_addresses', 'last_used_at'] as const),
      ],
    },
  },
  auth_challenges: { api: { insert: 'all', update: ['used_at'], delete: true } },
  accounts: {
    keeper: { update: ['reserved'] },
    indexer: { insert: ['user_id'], update: ['free', 'pending_withdrawal', 'reserved'] },
    engine: PUT,
  },
  markets: {
    keeper: {
      update: [
        ...(['mode', 'last_batch_id', 'last_batch_head', 'last_action_id', 'last_as_of'] as const),
        'held_mark',
        ...(['last_price', 'last_price_at', 'reserved_fee', 'reserving_after'] as const),
      ],
    },
    indexer: {
      update: [
        ...(['mode', 'expires_at', 'settling_at', 'dispute_window', 'terms'] as const),
        ...(['backstop', 'backstop_cap', 'final_report', 'ended'] as const),
      ],
    },
    engine: PUT,
  },
  final_prices: {},
  positions: {
    keeper: { insert: ['user_id', 'market_id', ...MATCHED], update: MATCHED },
    indexer: {
      insert: 'all',
      update: ['size', 'entry_notional', 'folded_margin', 'leverage', ...MATCHED],
    },
    engine: PUT,
  },
  orders: {
    // Forced orders.
    keeper: {
      insert: [
        ...(['order_id', 'market_id', 'seq', 'user_id', 'maker', 'hash', 'salt', 'side', 'type'] as const),
        ...(['price', 'quantity', 'trigger', 'leverage', 'reduce_only', 'expiration'] as const),
        ...(['alive_until', 'status', 'openable', 'reserved_price', 'reserved', 'accepted_at'] as const),
        'forced',
      ],
      update: [
        ...(['seq', 'status', 'status_reason', 'note', 'settling', 'closing_reason'] as const),
        ...(['closed_by', 'openable', 'reserved_price', 'reserved', 'held'] as const),
        ...(['partial_slot', 'triggered', 'ended_at'] as const),
      ],
    },
    indexer: {
      update: [
        ...(['status', 'status_reason', 'note', 'filled', 'settling', 'closing_reason'] as const),
        ...(['closed_by', 'openable', 'reserved', 'held', 'ended_at'] as const),
      ],
    },
    engine: PUT,
  },
  resting: {},
  oracle_reports: { keeper: { insert: 'all', update: 'all' } },
  recent_reports: { keeper: { insert: 'all', update: 'all' } },
  used_reports: { keeper: { insert: 'all' }, engine: { insert: 'all' } },
  calendar_exceptions: {},
  batches: {
    keeper: { insert: 'all', update: ['status', 'inputs'] },
    indexer: { update: ['status'] },
    engine: PUT,
  },
  // Written by the migration that creates it.
  proof_keys: {},
  fills: { keeper: { insert: 'all', update: ['status'] }, indexer: { update: ['status'] }, engine: PUT },
  actions: {
    keeper: {
      insert: [
        ...(['market_id', 'queue_no', 'kind', 'batch_id', 'part', 'payload', 'touches', 'as_of'] as const),
        ...(['status', 'created_at'] as const),
      ],
      update: ['status', 'action_id', 'relayer', 'nonce', 'failure'],
    },
    indexer: { update: ['status', 'failure'] },
    engine: PUT,
  },
  funding_states: { indexer: { insert: 'all', delete: true }, engine: PUT_AND_DELETED },
  price_averages: { keeper: { insert: 'all', update: 'all' }, engine: PUT },
  deleveraging_ranks: { keeper: { insert: 'all', update: 'all' } },
  relayers: { keeper: { insert: 'all', update: ['next_nonce', 'registered_at'] }, engine: PUT },
  relayer_choices: {},
  relayer_transactions: {
    keeper: { insert: 'all', update: ['status', 'error', 'broadcast_at', 'block', 'gas_used'] },
  },
  faucet_requests: {
    api: {
      insert: [
        ...(['kind', 'user_id', 'network_address', 'payload', 'status', 'tx_hash'] as const),
        ...(['error', 'created_at'] as const),
      ],
    },
    keeper: { update: ['status', 'tx_hash', 'error'] },
  },
  leases: { keeper: { insert: 'all', update: ['owner', 'token', 'expires_at'] } },
  indexer_leases: { indexer: { insert: 'all', update: ['owner', 'token', 'expires_at'] } },
  engine_groups: { keeper: { insert: 'all' }, engine: { insert: 'all' } },
  engine_ownership: { keeper: { update: 'all' }, engine: { update: 'all' } },
  engine_lease: { keeper: { update: 'all' }, engine: { update: 'all' } },
  engine_checkpoints: { keeper: { insert: 'all', update: 'all', delete: true }, engine: PUT_AND_DELETED },
  engine_checkpoint_chunks: {
    keeper: { insert: 'all', delete: true },
    engine: { insert: 'all', delete: true },
  },
  keepers: {
    keeper: { insert: 'all', delete: true, update: ['expires_at', 'capacity', 'is_late', 'markets'] },
  },
  session_keys: {
    indexer: {
      insert: 'all',
      update: ['permissions', 'registered_at', 'expires_at', 'revoked_at', 'block'],
      delete: true,
    },
    engine: PUT_AND_DELETED,
  },
  relay_operations: {
    keeper: {
      update: ['status', 'failure', 'reason', 'relayer', 'relayer_nonce', 'tx_hash', 'updated_at'],
    },
    indexer: { update: ['status', 'failure', 'reason', 'tx_hash', 'block', 'updated_at'] },
    engine: PUT,
  },
  forwarder_nonces: {
    indexer: { insert: 'all', update: ['next_nonce', 'block'], delete: true },
    engine: PUT_AND_DELETED,
  },
  margin_nonce_floors: {
    indexer: { insert: 'all', update: ['minimum', 'block'], delete: true },
    engine: PUT_AND_DELETED,
  },
  cancel_switches: {
    keeper: { delete: true },
    engine: PUT_AND_DELETED,
  },
  connection_switches: {
    keeper: { delete: true },
    engine: PUT_AND_DELETED,
  },
  fired_switches: { keeper: { insert: 'all', delete: true }, engine: PUT_AND_DELETED },
  // Updated never: the right to update is what locking the pruned rows takes.
  client_requests: { api: { update: ['created_at'], delete: true }, engine: PUT },
  liquidations: {
    keeper: {
      insert: 'all',
      update: [
        ...(['stage', 'order_id', 'widenings', 'resting', 'queue_no'] as const),
        ...(['attempts', 'failed_kind', 'retry_at', 'seen_seq'] as const),
      ],
      delete: true,
    },
    engine: PUT_AND_DELETED,
  },
  adjustment_attempts: {
    keeper: {
      update: [
        ...(['status', 'held', 'as_of', 'relayer', 'relayer_nonce', 'tx_hash', 'max_removable'] as const),
        ...(['failure_kind', 'failure_reason', 'seq', 'updated_at'] as const),
      ],
    },
    indexer: {
      update: [
        ...(['status', 'held', 'tx_hash', 'moved', 'gas_used', 'failure_kind', 'failure_reason'] as const),
        ...(['seq', 'updated_at'] as const),
      ],
    },
    engine: PUT,
  },
  used_margin_nonces: { indexer: { insert: 'all', delete: true }, engine: PUT_AND_DELETED },
  chain_blocks: { indexer: { insert: 'all', delete: true }, engine: PUT_AND_DELETED },
  chain_logs: {
    indexer: { insert: 'all', update: ['confirmed', 'shard', 'seq'], delete: true },
    engine: { delete: true },
  },
  chain_steps: { indexer: { insert: 'all', delete: true }, engine: { delete: true } },
  chain_progress: {
    indexer: { insert: 'all', update: ['next_block', 'head', 'completed_at', 'bank_pause_ends_at'] },
    engine: { update: ['next_block', 'bank_pause_ends_at'] },
  },
  settlement_mismatches: { indexer: { insert: 'all' }, engine: { insert: 'all' } },
  'read.places': PROJECTED,
  'read.arrivals': PROJECTED,
  'read.feed_state': PROJECTED,
  'read.feed_heads': PROJECTED,
  'read.feed': PROJECTED,
  'read.users': PROJECTED,
  'read.markets': PROJECTED,
  'read.orders': PROJECTED,
  'read.order_changes': PROJECTED,
  'read.order_events': {},
  'read.fills': PROJECTED,
  'read.positions': PROJECTED,
  'read.balances': PROJECTED,
  'read.withdrawal_events': PROJECTED,
  'read.position_states': PROJECTED,
  'read.realized_profits': PROJECTED,
  'read.book_levels': PROJECTED,
  'read.batches': PROJECTED,
  'read.funding_rates': PROJECTED,
  'read.candles': PROJECTED,
  'read.price_candles': PROJECTED,
  'read.ledger_transactions': PROJECTED,
  'read.funding_indexes': PROJECTED,
  'read.funding_positions': PROJECTED,
  'read.funding_spans': PROJECTED,
  'read.account_transactions': {},
  'read.open_interest': PROJECTED,
  'read.open_interest_changes': PROJECTED,
  'read.market_risk': PROJECTED,
  'read.liquidations': PROJECTED,
  'read.liquidation_steps': PROJECTED,
  'read.liquidation_legs': PROJECTED,
  'read.adjustment_attempts': PROJECTED,
}

const READ_MODEL = [
  ...(['read.places', 'read.arrivals', 'read.users', 'read.markets', 'read.orders'] as const),
  ...(['read.order_changes', 'read.order_events', 'read.fills', 'read.positions'] as const),
  ...([
    'read.balances',
    'read.withdrawal_events',
    'read.position_states',
    'read.realized_profits',
    'read.book_levels',
    'read.batches',
  ] as const),
  ...(['read.funding_rates', 'read.candles', 'read.price_candles', 'read.ledger_transactions'] as const),
  ...(['read.funding_indexes', 'read.funding_positions', 'read.funding_spans'] as const),
  ...([
    'read.account_transactions',
    'read.open_interest',
    'read.open_interest_changes',
    'read.market_risk',
  ] as const),
  ...(['read.liquidations', 'read.liquidation_steps', 'read.liquidation_legs'] as const),
  ...(['read.adjustment_attempts', 'read.feed_state', 'read.feed_heads', 'read.feed'] as const),
] as const

/** Requests of owners that the exchange relays, and what the indexer has recorded of their effects. */
const RELAYED = ['relay_operations', 'forwarder_nonces', 'margin_nonce_floors'] as const

const SHARED = ['shards', 'accounts', 'markets', 'positions', 'orders'] as const

/** The tables that each process may read. Only the api reads API keys; of stored transactions the indexer reads hash, nonce and purpose. */
export const READERS: { readonly [Name in Process]: readonly (keyof Database)[] } = {
  api: [
    ...SHARED,
    ...READ_MODEL,
    ...(['users', 'api_keys', 'resting', 'oracle_reports', 'session_keys', 'cancel_switches'] as const),
    ...(['client_requests', 'faucet_requests', 'chain_progress', 'journal', 'actions'] as const),
    'engine_ownership',
    'connection_switches',
    ...(['funding_states', 'used_reports', 'calendar_exceptions', 'price_averages'] as const),
    ...(['liquidations', 'deleveraging_ranks', 'adjustment_attempts', 'used_margin_nonces'] as const),
    ...(['relayers', 'leases', 'auth_challenges', 'batches', 'proof_keys', ...RELAYED] as const),
  ],
  keeper: [
    ...SHARED,
    ...(['journal', 'oracle_reports', 'batches', 'fills', 'actions', 'relayers'] as const),
    ...(['relayer_transactions', 'faucet_requests', 'leases', 'cancel_switches', 'fired_switches'] as const),
    'connection_switches',
    ...(['resting', 'chain_progress', 'chain_blocks', 'users', 'funding_states'] as const),
    ...(['recent_reports', 'used_reports', 'calendar_exceptions', 'price_averages', 'final_prices'] as const),
    ...(['liquidations', 'deleveraging_ranks', 'adjustment_attempts', 'keepers', 'session_keys'] as const),
    ...(['engine_groups', 'engine_ownership', 'engine_lease'] as const),
    ...(['engine_checkpoints', 'engine_checkpoint_chunks', 'relayer_choices'] as const),
    ...RELAYED,
  ],
  indexer: [
    ...SHARED,
    ...READ_MODEL,
    ...(['journal', 'users', 'batches', 'fills', 'actions', 'relayer_transactions'] as const),
    ...(['session_keys', 'chain_blocks', 'chain_logs', 'chain_steps', 'chain_progress'] as const),
    ...(['settlement_mismatches', 'indexer_leases', 'engine_ownership'] as const),
    ...(['resting', 'funding_states', 'adjustment_attempts', 'used_margin_nonces'] as const),
    ...RELAYED,
  ],
  engine: [
    ...(['shards', 'users', 'accounts', 'markets', 'price_averages'] as const),
    ...(['positions', 'orders', 'batches', 'fills', 'actions'] as const),
    ...([
      'funding_states',
      'liquidations',
      'adjustment_attempts',
      'used_margin_nonces',
      'margin_nonce_floors',
    ] as const),
    ...(['session_keys', 'forwarder_nonces', 'relay_operations', 'relayers', 'cancel_switches'] as const),
    ...(['connection_switches', 'fired_switches', 'client_requests', 'chain_blocks', 'chain_logs'] as const),
    ...(['chain_steps', 'journal', 'settlement_mismatches', 'used_reports', 'chain_progress'] as const),
    ...([
      'engine_groups',
      'engine_ownership',
      'engine_lease',
      'engine_checkpoints',
      'engine_checkpoint_chunks',
    ] as const),
    ...(['recent_reports'] as const),
  ],
}

/** The tables whose rows the exchange accepted or decided. Only db/ writes them. */
export const WRITE_SIDE = Object.keys(WRITERS).filter((table) => !table.startsWith('read.'))
