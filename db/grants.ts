/**
 * Rights of each process, as the migrations grant them; `test/db/roles.test.ts` compares Postgres. The database's owner
 * writes the remaining tables, for example `markets` and `backups`.
 */
import type { Database } from './schema.ts'

/** Each process connects with a login role that is a member of its group role. A running engine writes what other processes write without it. */
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

export const WRITERS: { readonly [Table in keyof Database]: Writers<Table> } = {
  shards: { indexer: { update: ['epoch'] }, engine: PUT },
  journal_spans: { engine: { insert: 'all' } },
  spanned_commands: { engine: { insert: 'all' } },
  // A view.
  journal: {},
  users: { engine: PUT },
  api_keys: {
    api: {
      insert: 'all',
      update: [
        ...(['key_hash', 'prefix', 'created_at', 'scope', 'allowed_addresses', 'last_used_at'] as const),
      ],
      delete: true,
    },
  },
  auth_challenges: { api: { insert: 'all', update: ['used_at'], delete: true } },
  markets: { engine: PUT },
  final_prices: {},
  orders: { engine: PUT },
  oracle_reports: { keeper: { insert: 'all', update: 'all' } },
  recent_reports: { keeper: { insert: 'all', update: 'all' } },
  used_reports: { keeper: { insert: 'all' }, engine: { insert: 'all' } },
  calendar_exceptions: {},
  announcements: {},
  backups: {},
  history_files: { api: { insert: 'all', update: ['sha256', 'size'] } },
  batches: { engine: PUT },
  batch_inputs: { keeper: { delete: true }, engine: PUT },
  // Written by the migration that creates it.
  proof_keys: {},
  actions: { engine: PUT },
  funding_states: { engine: PUT_AND_DELETED },
  price_averages: { engine: PUT },
  deleveraging_ranks: { keeper: { insert: 'all', update: 'all' } },
  relayers: { keeper: { update: ['registered_at'] }, engine: PUT },
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
  engine_groups: { engine: { insert: 'all' } },
  engine_ownership: { engine: { update: 'all' } },
  engine_lease: { engine: { update: 'all' } },
  engine_handovers: { engine: { insert: 'all', delete: true } },
  engine_tables: { engine: { update: ['written'] } },
  engine_checkpoints: { engine: PUT_AND_DELETED },
  engine_checkpoint_chunks: { engine: { insert: 'all', delete: true } },
  session_keys: { engine: PUT_AND_DELETED },
  relay_operations: { engine: PUT },
  forwarder_nonces: { engine: PUT_AND_DELETED },
  margin_nonce_floors: { engine: PUT_AND_DELETED },
  cancel_switches: { engine: PUT_AND_DELETED },
  connection_switches: { engine: PUT_AND_DELETED },
  fired_switches: { engine: PUT_AND_DELETED },
  // Updated never: the right to update is what locking the pruned rows takes.
  client_requests: { api: { update: ['created_at'], delete: true }, engine: PUT },
  liquidations: { engine: PUT_AND_DELETED },
  adjustment_attempts: { engine: PUT },
  used_margin_nonces: { engine: PUT_AND_DELETED },
  chain_blocks: { engine: PUT_AND_DELETED },
  chain_progress: {
    indexer: { insert: 'all', update: ['head', 'completed_at'] },
    engine: { update: ['next_block', 'bank_pause_ends_at'] },
  },
  settlement_mismatches: { engine: { insert: 'all' } },
  bound_exchange: { api: { insert: 'all' }, indexer: { insert: 'all' }, engine: { insert: 'all' } },
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
  'read.cash_flows': PROJECTED,
  'read.book_levels': PROJECTED,
  'read.builder_days': PROJECTED,
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
    'read.cash_flows',
    'read.book_levels',
    'read.builder_days',
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

const SHARED = ['shards', 'markets', 'orders'] as const

/** The tables that each process may read. Only the api reads API keys; of stored transactions the indexer reads hash, nonce and purpose. */
export const READERS: { readonly [Name in Process]: readonly (keyof Database)[] } = {
  api: [
    ...SHARED,
    ...READ_MODEL,
    ...(['users', 'api_keys', 'oracle_reports', 'session_keys', 'cancel_switches'] as const),
    ...(['client_requests', 'faucet_requests', 'chain_progress', 'actions'] as const),
    'spanned_commands',
    ...(['engine_ownership', 'engine_groups', 'engine_tables'] as const),
    'connection_switches',
    ...(['funding_states', 'used_reports', 'calendar_exceptions', 'price_averages'] as const),
    ...(['announcements', 'history_files'] as const),
    ...(['liquidations', 'deleveraging_ranks', 'adjustment_attempts', 'used_margin_nonces'] as const),
    ...(['batch_inputs', 'bound_exchange'] as const),
    ...(['relayers', 'leases', 'auth_challenges', 'batches', 'proof_keys', ...RELAYED] as const),
  ],
  keeper: [
    ...SHARED,
    ...(['oracle_reports', 'batches', 'batch_inputs', 'actions', 'relayers'] as const),
    ...(['relayer_transactions', 'faucet_requests', 'leases', 'cancel_switches', 'fired_switches'] as const),
    'connection_switches',
    ...(['chain_progress', 'chain_blocks', 'users', 'funding_states'] as const),
    ...(['recent_reports', 'used_reports', 'calendar_exceptions', 'price_averages', 'final_prices'] as const),
    ...(['liquidations', 'deleveraging_ranks', 'adjustment_attempts', 'session_keys'] as const),
    ...(['engine_groups', 'engine_ownership', 'engine_lease'] as const),
    ...(['engine_checkpoints', 'engine_checkpoint_chunks', 'relayer_choices', 'backups'] as const),
    'bound_exchange',
    ...(['read.places', 'read.balances', 'read.positions'] as const),
    ...RELAYED,
  ],
  indexer: [
    ...SHARED,
    ...READ_MODEL,
    ...(['engine_groups', 'journal_spans', 'users', 'batches', 'actions', 'relayer_transactions'] as const),
    ...(['session_keys', 'chain_blocks', 'chain_progress'] as const),
    ...(['settlement_mismatches', 'indexer_leases', 'engine_ownership', 'bound_exchange'] as const),
    ...(['funding_states', 'adjustment_attempts', 'used_margin_nonces'] as const),
    ...RELAYED,
  ],
  engine: [
    ...(['shards', 'users', 'markets', 'price_averages'] as const),
    ...(['orders', 'batches', 'batch_inputs', 'actions'] as const),
    ...([
      'funding_states',
      'liquidations',
      'adjustment_attempts',
      'used_margin_nonces',
      'margin_nonce_floors',
    ] as const),
    ...(['session_keys', 'forwarder_nonces', 'relay_operations', 'relayers', 'cancel_switches'] as const),
    ...(['connection_switches', 'fired_switches', 'client_requests', 'chain_blocks'] as const),
    ...(['journal_spans', 'spanned_commands'] as const),
    ...(['settlement_mismatches', 'used_reports', 'chain_progress', 'bound_exchange'] as const),
    ...([
      'engine_groups',
      'engine_ownership',
      'engine_lease',
      'engine_handovers',
      'engine_tables',
      'engine_checkpoints',
      'engine_checkpoint_chunks',
    ] as const),
    ...(['recent_reports'] as const),
  ],
}

/** The tables whose rows the exchange accepted or decided. Only db/ writes them. */
export const WRITE_SIDE = Object.keys(WRITERS).filter((table) => !table.startsWith('read.'))
