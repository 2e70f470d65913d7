/** The tables, one interface each, with the one process that writes it. Wei are bigint; counts, ids and times are safe integers. */
import type { Generated, JSONColumnType } from 'kysely'
import type { JournalRow, StoredValue, TriggerEvidence } from '../domain/journal/journal-row.ts'
import type { MarketKind, MarketMode } from '../domain/market/market.ts'
import type { OrderStatus, OrderType, Side, StatusReason } from '../domain/orders/order.ts'
import type { FillStatus } from '../domain/orders/order-state.ts'
import type { ChainTables } from './chain-schema.ts'
import type { ReadTables } from './read-schema.ts'

/** Every writer of a shard's facts holds this row's lock while it appends. */
export interface ShardsTable {
  shard: string
  epoch: Generated<number>
  head: Generated<number>
}

/** Appended in the transaction that changes what the row tells. */
export interface JournalTable {
  shard: string
  seq: number
  row: JSONColumnType<JournalRow>
}

/** Written by the indexer (first deposit) and the api (login). */
export interface UsersTable {
  user_id: Generated<number>
  address: string
  created_at: number
}

/** Written by the api. The key itself is not kept, only its SHA-256. */
export interface ApiKeysTable {
  user_id: number
  key_hash: Buffer
  prefix: string
  created_at: number
}

/** `free` and `pending_withdrawal`: the bank's ledger, written by the indexer. `reserved`: sum of `reserved + held` of the account's orders. */
export interface AccountsTable {
  user_id: number
  free: Generated<bigint>
  pending_withdrawal: Generated<bigint>
  reserved: Generated<bigint>
}

/** Written at listing; `last_*` by the keeper under the market's shard lock. */
export interface MarketsTable {
  market_id: number
  symbol: string
  kind: MarketKind
  trader: string
  spec: JSONColumnType<Record<string, StoredValue>>
  mode: Generated<MarketMode>
  last_batch_id: Generated<number>
  last_action_id: Generated<number>
  last_as_of: Generated<number>
  last_price: number | null
  last_price_at: number | null
}

/** Mined columns are written by the indexer; `matched_*` (mined and unsettled together) by the keeper at match and void. */
export interface PositionsTable {
  user_id: number
  market_id: number
  size: Generated<number>
  entry_notional: Generated<bigint>
  folded_margin: Generated<bigint>
  leverage: Generated<number>
  matched_size: Generated<number>
  matched_entry_notional: Generated<bigint>
  matched_folded_margin: Generated<bigint>
  matched_leverage: Generated<number>
}

/** Inserted by the api; settling and voiding by the keeper; filled by the indexer; always under the market's shard lock. */
export interface OrdersTable {
  order_id: string
  market_id: number
  /** Place in the book: the shard sequence of its acceptance (or of its trigger). */
  seq: number
  user_id: number
  maker: string
  signer: string
  hash: string
  signature: string
  salt: number
  side: Side
  type: OrderType
  price: number
  quantity: number
  trigger: number
  leverage: number
  reduce_only: boolean
  expiration: number
  /** See `aliveUntil`; 0 never ends. */
  alive_until: number
  status: OrderStatus
  status_reason: StatusReason | null
  /** The trader's own words at a cancel. */
  note: string | null
  /** Mined. */
  filled: Generated<number>
  /** Matched and not yet mined. */
  settling: Generated<number>
  /** Set when the order left the book but some of it is settling: the reason it ends with. */
  closing_reason: StatusReason | null
  openable: number
  reserved_price: number
  /** For the part that is still in the book. */
  reserved: bigint
  /** For the part that is settling. */
  held: Generated<bigint>
  partial_slot: number | null
  accepted_at: number
  /** What triggered it; null while it waits, and for orders that never wait. */
  triggered: Generated<TriggerEvidence | null>
  ended_at: number | null
}

/**
 * What an account's live orders in a market come to, so that a placement need not read them. Maintained by triggers on `orders`,
 * whoever writes there; `plain_*` count what is in the book of orders that are not reduce-only.
 */
export interface RestingTable {
  market_id: number
  user_id: number
  orders: number
  plain_long: number
  plain_short: number
  openable: number
  /** Sum of openable steps x reserved price, in ticks. */
  open_value: bigint
  /** Sum of reserved and held. */
  reserved: bigint
}

/** Latest signed report per market. Written by whoever feeds prices. */
export interface OracleReportsTable {
  market_id: number
  price: bigint
  observed_at: number
  signatures: string
  received_at: number
}

export type BatchStatus = 'SETTLING' | 'SETTLED' | 'VOIDED'

/** Written by the keeper; status SETTLED by the indexer. `inputs` is what a stranger needs to compute the batch again. */
export interface BatchesTable {
  market_id: number
  batch_id: number
  as_of: number
  price: number
  lo: number
  hi: number
  volume: number
  demand: number
  supply: number
  rule: string
  parts: number
  oracle_price: bigint
  oracle_at: number
  oracle_signatures: string
  maker_fee: bigint
  taker_fee: bigint
  inputs: JSONColumnType<object>
  status: BatchStatus
  created_at: number
}

/** Inserted by the keeper. `place` is the fill's position inside its part: the settlement sends them in this order. */
export interface FillsTable {
  fill_id: string
  market_id: number
  batch_id: number
  part: number
  place: number
  order_id: string
  user_id: number
  side: Side
  steps: number
  taker_steps: number
  partial_slot: number | null
  held: bigint
  status: FillStatus
}

export type ActionStatus = 'QUEUED' | 'SIGNED' | 'SUBMITTED' | 'MINED' | 'REVERTED' | 'VOIDED'

/** The market's queue of operator actions, written by the keeper; MINED by the indexer. `action_id` is given at signing. */
export interface ActionsTable {
  market_id: number
  queue_no: number
  kind: 'settle_part'
  batch_id: number
  part: number
  as_of: number
  status: ActionStatus
  action_id: number | null
  relayer: string | null
  nonce: number | null
  created_at: number
}

export interface RelayersTable {
  address: string
  chain_id: number
  lane: string
  next_nonce: number
}

export type TransactionStatus = 'SIGNED' | 'BROADCAST' | 'MINED' | 'REVERTED' | 'REPLACED'

/** Every transaction ever signed, stored before it is sent. Written by the keeper. */
export interface RelayerTransactionsTable {
  tx_hash: string
  relayer: string
  chain_id: number
  nonce: number
  purpose: string
  raw: string
  status: TransactionStatus
  error: string | null
  signed_at: number
  broadcast_at: number | null
  block: number | null
}

/** What the api asks the keeper to relay (the faucet). */
export interface FaucetRequestsTable {
  request_id: Generated<number>
  kind: 'faucet'
  user_id: number
  payload: JSONColumnType<Record<string, string>>
  status: 'REQUESTED' | 'SIGNED' | 'MINED' | 'FAILED'
  tx_hash: string | null
  error: string | null
  created_at: number
}

/** What each key may do for its owner, as the chain tells it. Written by the indexer. Times in Unix seconds. */
export interface SessionKeysTable {
  owner: string
  key: string
  permissions: number
  registered_at: number
  expires_at: number
  revoked_at: number | null
  /** Of its last change. */
  block: number
}

/** Armed dead-man switches. Written by the api; the keeper takes those that are due. Times in milliseconds. */
export interface CancelSwitchesTable {
  user_id: number
  timeout_seconds: number
  armed_at: number
  fire_at: number
}

/** Switches that have fired, until every order that the account had then is cancelled. Written by the keeper. */
export interface FiredSwitchesTable {
  user_id: number
  fired_at: number
}

/** One owner at a time; the token grows with each owner, and every write of an owner checks it. */
export interface LeasesTable {
  name: string
  owner: string
  token: number
  expires_at: number
}

/** Commands with an id of their trader's, and what they were answered. Written by the api, which also removes the old ones. */
export interface ClientRequestsTable {
  user_id: number
  client_request_id: string
  /** SHA-256 of endpoint and body. */
  digest: Buffer
  answer: string
  created_at: number
}

export interface Database extends ChainTables, ReadTables {
  shards: ShardsTable
  journal: JournalTable
  users: UsersTable
  api_keys: ApiKeysTable
  accounts: AccountsTable
  markets: MarketsTable
  positions: PositionsTable
  orders: OrdersTable
  resting: RestingTable
  oracle_reports: OracleReportsTable
  batches: BatchesTable
  fills: FillsTable
  actions: ActionsTable
  relayers: RelayersTable
  relayer_transactions: RelayerTransactionsTable
  faucet_requests: FaucetRequestsTable
  leases: LeasesTable
  session_keys: SessionKeysTable
  cancel_switches: CancelSwitchesTable
  fired_switches: FiredSwitchesTable
  client_requests: ClientRequestsTable
}
