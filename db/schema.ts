/** The tables of the write side, one interface each. `grants.ts` states which columns each process writes. Wei are bigint; counts, ids and times are safe integers. */

import type { ColumnType, Generated, JSONColumnType } from 'kysely'
import type { ActionKind } from '../domain/actions/action.ts'
import type { StoredPayload } from '../domain/actions/stored-action.ts'
import type { JournalRow, StoredInterval, TriggerEvidence } from '../domain/journal/journal-row.ts'
import type { CalendarName } from '../domain/market/trading-calendar.ts'
import type { OrderStatus, OrderType, Side, StatusReason } from '../domain/orders/order.ts'
import type { BatchStatus } from '../domain/settlement/settlement.ts'
import type { AdjustmentAttemptsTable, UsedMarginNoncesTable } from './adjustment-schema.ts'
import type { ChainTables } from './chain-schema.ts'
import type { ApiKeysTable, AuthChallengesTable, ProofKeysTable } from './credentials-schema.ts'
import type { EngineTables } from './engine-schema.ts'
import type { HistoryFilesTable } from './history-schema.ts'
import type { LeaseTables } from './lease-schema.ts'
import type { LiquidationsTable } from './liquidation-schema.ts'
import type { FinalPricesTable, MarketsTable } from './market-schema.ts'
import type { OrderFlagColumns } from './order-flag-columns.ts'
import type { PriceTables } from './price-schema.ts'
import type { ReadTables } from './read-schema.ts'
import type { RelayTables } from './relay-schema.ts'
import type { RelayerChoicesTable, RelayersTable, RelayerTransactionsTable } from './relayer-schema.ts'

/**
 * The head and the epoch of each shard's journal. A writer of a shard's facts holds this row's lock until it commits.
 * Written by: indexer, engine. The owner inserts shards when it lists a market.
 */
export interface ShardsTable {
  shard: string
  epoch: Generated<number>
  head: Generated<number>
}

/** A view: the rows of the groups that the tables of readers contain. Reads by shard and sequence use `journal_spans`. Written by: none. */
export interface JournalTable {
  shard: string
  seq: number
  row: JSONColumnType<JournalRow>
}

/** A user exists from the first deposit or login. Written by: engine. */
export interface UsersTable {
  user_id: Generated<number>
  address: string
  created_at: number
}

/**
 * Orders as the engine has them, also those that have ended: the api recognises repeated commands by them. The engine's
 * releases and rebuilds of the read model leave them. Written by: engine.
 */
export interface OrdersTable extends OrderFlagColumns {
  order_id: string
  market_id: number
  /** Place in the book: the shard sequence of its acceptance (or of its trigger). */
  seq: number
  user_id: number
  maker: string
  /** Null for a forced order, which no trader has signed. */
  signer: string | null
  hash: string
  signature: string | null
  /** Unique per maker and market among the orders that are not forced; of a forced order its own number. */
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
  /** The trader's reason for the cancel. */
  note: string | null
  /** Mined. */
  filled: Generated<number>
  /** Matched and not yet mined. */
  settling: Generated<number>
  /** Set while the order has left the book and waits for a batch to be mined: the reason it ends with. */
  closing_reason: StatusReason | null
  /** The matched fill that closed the position of a reduce-only order which left the book with it. */
  closed_by: Generated<string | null>
  openable: number
  reserved_price: number
  /** For the part in the book. */
  reserved: bigint
  /** For the settling part. */
  held: Generated<bigint>
  partial_slot: number | null
  accepted_at: number
  /** Evidence of the order's trigger; null until then, and for orders without a trigger. */
  triggered: Generated<TriggerEvidence | null>
  ended_at: number | null
  /** True for a liquidation's order: reduce-only, inserted by the keeper. */
  forced: Generated<boolean>
  /** The trader's label, which no signature covers. Unique among the account's live orders when the order was accepted. */
  client_order_id: Generated<string | null>
}

/**
 * Exceptions of a trading calendar; without hours, closed all day. Hours: minutes after midnight, New York. Written by:
 * no process; `npm run cb -- ops calendar`.
 */
export interface CalendarExceptionsTable {
  calendar: CalendarName
  /** Parsed as text by the query that selects it. */
  day: string
  opens: number | null
  closes: number | null
  reason: string
  created_at: number
}

/** Base backups that were verified. Written by: no process. The owner records them with `npm run cb -- ops backup run`. */
export interface BackupsTable {
  backup_id: Generated<number>
  /** Name of its folder. */
  label: string
  started_at: number
  completed_at: number
  bytes: number
}

/**
 * Notices of the operator to traders. `starts_at` and `ends_at`: the window of a maintenance, else null.
 * Written by: no process. The owner edits it with `npm run cb -- ops announce`.
 */
export interface AnnouncementsTable {
  announcement_id: Generated<number>
  kind: 'notice' | 'maintenance'
  title: string
  body: string
  /** Null: the whole exchange. */
  market_id: number | null
  starts_at: number | null
  ends_at: number | null
  created_at: number
  withdrawn_at: number | null
}

/**
 * A cleared batch. Written by: engine. A block writes the status SETTLED, and its rollback SETTLING.
 */
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
  status: BatchStatus
  created_at: number
}

/** All that is needed to recompute a batch. Written by: engine, with the group that clears the batch; keeper, which deletes old ones. */
export interface BatchInputsTable {
  market_id: number
  batch_id: number
  as_of: number
  /** See `batch-inputs.ts`. */
  inputs: Buffer
}

export type ActionStatus = 'QUEUED' | 'SIGNED' | 'SUBMITTED' | 'MINED' | 'REVERTED' | 'VOIDED'

/**
 * The market's queue of operator actions. A QUEUED action keeps its reserved `action_id`, relayer and nonce.
 * Written by: engine; blocks write MINED, rollbacks SUBMITTED.
 */
export interface ActionsTable {
  market_id: number
  queue_no: number
  kind: ActionKind
  /** Null unless the action is a part of a batch. */
  batch_id: number | null
  part: number | null
  /** The arguments of a single action; null for a part, whose terms are in `batches`. */
  payload: ColumnType<StoredPayload | null, string | null | undefined, never>
  /** The accounts whose positions a single action may change. Those of a part are in its fills. */
  touches: Generated<number[]>
  as_of: number
  status: ActionStatus
  action_id: number | null
  relayer: string | null
  nonce: number | null
  /** Why a single action was dropped, or had no effect. */
  failure: Generated<string | null>
  created_at: number
}

/**
 * The market's funding index and rate after each mined action that changed them; the newest action's row is in force.
 * Written by: engine.
 */
export interface FundingStatesTable {
  market_id: number
  action_id: number
  as_of: number
  funding_index: bigint
  rate: bigint
  valid_from: number
  valid_until: number
}

/**
 * The averages behind a market's mark price and funding rate, stored with each mark. `basis` is that of (mid - oracle price); `premium` has
 * the intervals of the last hour.
 * Written by: engine.
 */
export interface PriceAveragesTable {
  market_id: number
  basis: bigint
  basis_at: number
  premium_at: number
  premium: JSONColumnType<StoredInterval[]>
}

/**
 * Scores that divide each side's candidates for deleveraging into fifths, highest first, as decimal strings, and the oracle price and the
 * funding index at which they were computed. Written by: keeper.
 */
export interface DeleveragingRanksTable {
  market_id: number
  oracle_price: bigint
  funding_index: bigint
  longs: JSONColumnType<string[]>
  shorts: JSONColumnType<string[]>
  ranked_at: number
}

/** Payouts of the faucet: requested by the api, signed and finished by the keeper. Written by: api, keeper. */
export interface FaucetRequestsTable {
  request_id: Generated<number>
  kind: 'faucet'
  user_id: number
  /** From which it came; an IPv6 address as its network. Null in rows from before it was stored. */
  network_address: string | null
  payload: JSONColumnType<Record<string, string>>
  status: 'REQUESTED' | 'SIGNED' | 'MINED' | 'FAILED'
  tx_hash: string | null
  error: string | null
  created_at: number
}

/** Permissions of each key to sign for its owner, by the chain's events. Times in Unix seconds. Written by: engine. */
export interface SessionKeysTable {
  owner: string
  key: string
  permissions: number
  registered_at: number
  expires_at: number
  revoked_at: number | null
  /** Block of the last change. */
  block: number
}

/** Armed dead-man switches. Times in milliseconds. Written by: engine. */
export interface CancelSwitchesTable {
  user_id: number
  timeout_seconds: number
  armed_at: number
  fire_at: number
}

/** Dead-man switches of connections to the live feed. Written by: engine. */
export interface ConnectionSwitchesTable {
  connection_id: string
  user_id: number
  timeout_seconds: number
  fire_at: number
  /** Name of the connection's API key; null for an identity token. */
  key_name: string | null
}

/** Switches that have fired, until every order that the account had at `fired_at` is cancelled. Written by: engine. */
export interface FiredSwitchesTable {
  user_id: number
  fired_at: number
}

/** Commands with a `client_request_id`, and their answers; pruned when they expire. Written by: api, engine. */
export interface ClientRequestsTable {
  user_id: number
  client_request_id: string
  /** SHA-256 of endpoint and body. */
  digest: Buffer
  /** As the api sent it; of a row of the engine JSON with results, balance and bookmark of `RequestCompleted`, from which the api makes its answer. */
  answer: string
  created_at: number
}

export interface Database
  extends ChainTables,
    EngineTables,
    LeaseTables,
    ReadTables,
    PriceTables,
    RelayTables {
  shards: ShardsTable
  journal: JournalTable
  users: UsersTable
  api_keys: ApiKeysTable
  auth_challenges: AuthChallengesTable
  markets: MarketsTable
  final_prices: FinalPricesTable
  orders: OrdersTable
  calendar_exceptions: CalendarExceptionsTable
  announcements: AnnouncementsTable
  backups: BackupsTable
  history_files: HistoryFilesTable
  batches: BatchesTable
  batch_inputs: BatchInputsTable
  proof_keys: ProofKeysTable
  actions: ActionsTable
  funding_states: FundingStatesTable
  price_averages: PriceAveragesTable
  deleveraging_ranks: DeleveragingRanksTable
  relayers: RelayersTable
  relayer_choices: RelayerChoicesTable
  relayer_transactions: RelayerTransactionsTable
  faucet_requests: FaucetRequestsTable
  session_keys: SessionKeysTable
  cancel_switches: CancelSwitchesTable
  connection_switches: ConnectionSwitchesTable
  fired_switches: FiredSwitchesTable
  client_requests: ClientRequestsTable
  liquidations: LiquidationsTable
  adjustment_attempts: AdjustmentAttemptsTable
  used_margin_nonces: UsedMarginNoncesTable
}
