/** The tables of the schema `read`: what readers see. Only the projector writes them. */
import type { Generated, JSONColumnType } from 'kysely'
import type { StoredValue, TriggerEvidence } from '../domain/journal/journal-row.ts'
import type { TransactionType } from '../domain/journal/transaction-type.ts'
import type { MarketKind } from '../domain/market/market.ts'
import type { OrderStatus, OrderType, Side, StatusReason } from '../domain/orders/order.ts'
import type { FillStatus, OrderEventKind } from '../domain/orders/order-state.ts'
import type { BatchStatus } from '../domain/settlement/settlement.ts'
import type { ReadAdjustmentAttemptsTable } from './adjustment-schema.ts'
import type { FeedHeadsTable, FeedStateTable, FeedTable } from './feed-schema.ts'
import type { OrderFlagColumns } from './order-flag-columns.ts'
import type { ProtectionColumns } from './price-protection.ts'
import type { ReadCashFlowsTable, ReadRealizedProfitsTable } from './read-equity-schema.ts'
import type {
  BatchPartState,
  ReadBookLevelsTable,
  ReadBuilderDaysTable,
  ReadCandlesTable,
  ReadOpenInterestChangesTable,
  ReadPriceCandlesTable,
} from './read-market-data-schema.ts'
import type { MinedColumns, RiskReadTables } from './read-risk-schema.ts'

/**
 * The projections and the tables that each of them fills. A projection is projected, versioned and rebuilt on its own; its tables change
 * together, because rows of one are derived from rows of another.
 */
export const PROJECTED_TABLES = {
  users: ['read.users'],
  markets: ['read.markets'],
  batches: ['read.batches', 'read.candles'],
  funding_rates: ['read.funding_rates'],
  price_candles: ['read.price_candles'],
  balances: ['read.balances'],
  cash_flows: ['read.cash_flows'],
  withdrawals: ['read.withdrawal_events'],
  position_history: ['read.position_states', 'read.realized_profits'],
  orders: [
    ...(['read.orders', 'read.order_changes', 'read.fills', 'read.positions'] as const),
    ...(['read.book_levels', 'read.builder_days'] as const),
  ],
  transactions: [
    ...(['read.ledger_transactions', 'read.funding_indexes', 'read.funding_positions'] as const),
    ...(['read.funding_spans', 'read.open_interest', 'read.open_interest_changes'] as const),
  ],
  risk: ['read.market_risk'],
  liquidations: ['read.liquidations', 'read.liquidation_steps', 'read.liquidation_legs'],
  adjustments: ['read.adjustment_attempts'],
} as const satisfies Record<string, readonly (keyof ReadTables)[]>

export type ProjectionName = keyof typeof PROJECTED_TABLES

/** A table of the read model that a projection fills. Views are read as their tables. */
export type ReadTableName = (typeof PROJECTED_TABLES)[ProjectionName][number]

/** The place of one projection in one shard's journal. */
export interface PlacesTable {
  shard: string
  projection: string
  epoch: number
  /**
   * Version of the definition that projected the rows. An indexer with a higher version empties the tables and fills
   * them again.
   */
  version: number
  /** The last journal row that is projected. */
  seq: number
  /** While the tables are being filled: the journal's head when that began. Null once they are complete. */
  fill_to: number | null
}

export interface ReadMarketsTable extends ProtectionColumns {
  market_id: number
  symbol: string
  kind: MarketKind
  spec: JSONColumnType<Record<string, StoredValue>>
  oracle_price: bigint | null
  oracle_at: number | null
  mark_price: bigint | null
  last_price: number | null
  last_batch_id: number | null
}

export interface ReadOrdersTable extends OrderFlagColumns {
  order_id: string
  market_id: number
  seq: number
  user_id: number
  maker: string
  /** Null for a forced order. */
  signer: string | null
  hash: string
  salt: number
  side: Side
  type: OrderType
  price: number
  quantity: number
  trigger: number
  leverage: number
  reduce_only: boolean
  expiration: number
  status: OrderStatus
  status_reason: StatusReason | null
  note: string | null
  filled: Generated<number>
  /** Sum of price x steps of its mined fills. */
  filled_value: Generated<bigint>
  settling: Generated<number>
  fee: Generated<bigint>
  /** Wei reserved for the order; `held` covers its settling steps. */
  reserved: bigint
  held: bigint
  /**
   * Steps in the book that the reservation covers as opening; 0 for reduce-only orders. The remaining steps, the
   * indexed column `uncovered`, execute only if the position allows it.
   */
  openable: number
  accepted_at: number
  /**
   * The worst price, in ticks, at which the batch that ran with this market order could fill it; null for limit orders, before that
   * batch, and while the order waits again because that batch was voided.
   */
  protection_price: number | null
  /** Evidence of the order's trigger; null until then, and for orders without a trigger. */
  triggered: TriggerEvidence | null
  updated_at: number
  /** Number of the order's first event, CREATED: see ReadOrderEventsTable. */
  arrival: number
  /** An order of a liquidation, without a signature. */
  forced: Generated<boolean>
  /** The trader's label. */
  client_order_id: Generated<string | null>
}

/** Events of orders: all of them in the view `read.order_events`, all except CREATED in the table `read.order_changes`. */
export interface ReadOrderEventsTable {
  shard: string
  seq: number
  place: number
  order_id: string
  user_id: number
  kind: OrderEventKind
  details: JSONColumnType<object>
  at: number
  /** The event's number in the order of commits, so that later events have higher numbers. A rebuild assigns new numbers, by time. */
  arrival: number
}

/**
 * A position after a mined event, with its sums since it was opened. The newest state of an account in a market is the one in force; one
 * with `closed_at` is the last of its position.
 */
export interface ReadPositionStatesTable {
  user_id: number
  market_id: number
  /** Per account and market. */
  number: number
  /** Id from the event's transaction, log and account. */
  event: string
  side: Side
  /** Signed; 0 once it is closed. */
  size: number
  largest: number
  opened_steps: number
  opened_value: bigint
  closed_steps: number
  closed_value: bigint
  entry_notional: bigint
  realized_pnl: bigint
  fees: bigint
  funding: bigint
  /** At the event. */
  funding_index: bigint
  opened_at: number
  closed_at: number | null
  /** How it ended; null while it is open. */
  ending: string | null
  /** Time of the event, and not before that of the state before. */
  at: number
}

export interface ReadFillsTable {
  fill_id: string
  market_id: number
  batch_id: number
  part: number
  /** Position inside its part. Market, batch, part and place are the fill's public id. */
  place: number
  order_id: string
  user_id: number
  side: Side
  price: number
  steps: number
  taker_steps: number
  /**
   * Protection price of the order in the batch that matched it; null for limit orders, and for fills known only from
   * the chain.
   */
  protection_price: number | null
  fee: bigint | null
  realized_pnl: bigint | null
  /** Change of the free balance, fee included. */
  available_margin_delta: bigint | null
  status: FillStatus
  tx_hash: string | null
  block: number | null
  /** The contract's id of the action that settles it. */
  action_id: number | null
  matched_at: number
  submitted_at: number | null
  mined_at: number | null
  confirmed_at: number | null
  /** When it was voided, and the chain's error. */
  failed_at: number | null
  failure: string | null
  updated_at: number
  /** True if the order was forced. */
  forced: Generated<boolean>
  /** The label of its order. */
  builder: Generated<string | null>
}

/** Mined columns; `pending` is the signed size that is matched and not yet mined. */
export interface ReadPositionsTable {
  user_id: number
  market_id: number
  size: number
  entry_notional: bigint
  folded_margin: bigint
  leverage: number
  pending: Generated<number>
  realized_pnl: Generated<bigint>
  fees: Generated<bigint>
  updated_at: number
}

export interface ReadBalancesTable {
  user_id: number
  free: Generated<bigint>
  reserved: Generated<bigint>
  pending_withdrawal: Generated<bigint>
}

export interface ReadBatchesTable {
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
  /** See `RULE_VERSION`; null for a batch from before it was recorded. */
  rule_version: number | null
  parts: number
  settled_parts: Generated<number>
  status: BatchStatus
  oracle_price: bigint
  oracle_at: number
  /** Steps of one side that were not voided. */
  filled: Generated<number>
  /** Fills of both sides that were not voided. */
  fills: Generated<number>
  /** By part, from the first. */
  part_states: JSONColumnType<readonly BatchPartState[]>
  /** Every part is confirmed or voided. */
  is_final: Generated<boolean>
}

/** A mined funding update. `is_mined` is false while its block has left the chain. */
export interface ReadFundingRatesTable {
  market_id: number
  action_id: number
  /** The rate applies from then on. */
  as_of: number
  /** Wei per step and hour. */
  rate: bigint
  valid_until: number
  funding_index: bigint
  oracle_price: bigint
  oracle_at: number
  tx_hash: string
  is_mined: boolean
}

/** Transactions of accounts that are stored with their amounts: deposits, withdrawals and liquidations. */
/** A request of a withdrawal, or the payout of all that were requested since the payout before. */
export interface ReadWithdrawalEventsTable extends MinedColumns {
  id: string
  user_id: number
  is_payout: boolean
  amount: bigint
}

export interface ReadLedgerTransactionsTable extends MinedColumns {
  id: string
  user_id: number
  type: TransactionType
  market_id: number | null
  /** Never negative. */
  amount: bigint
  /** Change of the free balance. */
  available_margin_delta: bigint
}

/** A market's funding updates that moved its index, and its end. `number` counts them from 1. */
export interface ReadFundingIndexesTable extends MinedColumns {
  market_id: number
  number: number
  funding_index: bigint
  /** Index at the previous update; 0 before the first. */
  previous_index: bigint
  action_id: number
}

/** The size that an account has, since the index `from_index`; updates after `from_number` pay it. All 0 if it is flat. */
export interface ReadFundingPositionsTable {
  user_id: number
  market_id: number
  size: number
  from_index: bigint
  from_number: number
}

/**
 * Time between two changes of a position with a size while funding moved. Updates after `from_number` to `to_number`
 * paid it; `payment` is the rest at its end, and may be 0.
 */
export interface ReadFundingSpansTable extends MinedColumns {
  /** Id of the payment at the span's end. */
  id: string
  user_id: number
  market_id: number
  size: number
  from_index: bigint
  from_number: number
  to_number: number
  /** One of the updates paid more than 0. */
  has_updates: boolean
  payment: bigint
}

/** The sum of a market's mined long positions: `steps` of `read.funding_positions`, which equal those of the shorts until it ends. */
export interface ReadOpenInterestTable {
  market_id: number
  steps: number
}

/** All transactions of accounts: a view over the tables of the projection `transactions`. Its `id` is unique. */
export interface ReadAccountTransactionsTable extends ReadLedgerTransactionsTable {
  /** Funding that the position's margin received; null for other transactions. */
  funding_payment_delta: bigint | null
}

export interface ReadTables extends RiskReadTables {
  'read.feed_state': FeedStateTable
  'read.feed_heads': FeedHeadsTable
  'read.feed': FeedTable
  'read.places': PlacesTable
  'read.users': { user_id: number; address: string; created_at: number }
  'read.markets': ReadMarketsTable
  'read.orders': ReadOrdersTable
  'read.order_events': ReadOrderEventsTable
  'read.order_changes': ReadOrderEventsTable
  /** One row: the last number assigned to an event. */
  'read.arrivals': { last: number }
  'read.fills': ReadFillsTable
  'read.positions': ReadPositionsTable
  'read.balances': ReadBalancesTable
  'read.withdrawal_events': ReadWithdrawalEventsTable
  'read.position_states': ReadPositionStatesTable
  'read.realized_profits': ReadRealizedProfitsTable
  'read.cash_flows': ReadCashFlowsTable
  'read.book_levels': ReadBookLevelsTable
  'read.builder_days': ReadBuilderDaysTable
  'read.batches': ReadBatchesTable
  'read.funding_rates': ReadFundingRatesTable
  'read.candles': ReadCandlesTable
  'read.price_candles': ReadPriceCandlesTable
  'read.ledger_transactions': ReadLedgerTransactionsTable
  'read.funding_indexes': ReadFundingIndexesTable
  'read.funding_positions': ReadFundingPositionsTable
  'read.funding_spans': ReadFundingSpansTable
  'read.account_transactions': ReadAccountTransactionsTable
  'read.open_interest': ReadOpenInterestTable
  'read.open_interest_changes': ReadOpenInterestChangesTable
  'read.adjustment_attempts': ReadAdjustmentAttemptsTable
}
