/** The state on which a group is decided: read under the locks of its markets and accounts, so that the decision is final. */

import type { Selectable } from 'kysely'
import type { StoredMargin } from '../../db/funding.ts'
import type { ShardHead } from '../../db/journal.ts'
import type { ClientRequestsTable, OrdersTable } from '../../db/schema.ts'
import type { SigningKeyRow } from '../../db/session-keys.ts'
import type { TermsColumns } from '../../db/terms.ts'
import type { Position } from '../../domain/positions/position.ts'
import type { FundingState } from '../../domain/prices/funding-state.ts'
import type { LabelledOrder } from './labelled-orders.ts'

export interface CurrentMarket {
  readonly head: ShardHead
  /** With announced changes; see `toMarketTerms`. */
  readonly terms: TermsColumns
  readonly oraclePrice: bigint | null
  readonly oracleAt: number | null
  /** Time at which the indexer last completed a pass over the chain's head. */
  readonly chainSeenAt: number | null
  /** After the last queued action. */
  readonly funding: FundingState
}

/** Balances of an account, and its margins in all markets. */
export interface Funds {
  readonly free: bigint
  readonly reserved: bigint
  readonly pendingWithdrawal: bigint
  readonly margins: readonly StoredMargin[]
}

/** An account in one market: its position and the sums over its live orders. */
export interface Holding {
  /** The matched position: mined and unsettled fills together. */
  readonly position: Position
  readonly count: number
  /** Remaining steps of plain orders. */
  readonly plainLong: number
  readonly plainShort: number
  readonly openable: number
  /** Sum of openable steps x reserved price, in ticks. */
  readonly openValue: bigint
  /** Reservation of the live orders, settling fills included. */
  readonly ordersReserved: bigint
}

export type StoredOrder = Selectable<OrdersTable> & {
  readonly filled_value: bigint
  readonly fee: bigint
  readonly protection_price: number | null
  readonly updated_at: number
}

export type StoredRequest = Pick<ClientRequestsTable, 'digest' | 'answer'>

export interface GroupState {
  readonly markets: Map<number, CurrentMarket>
  /** Head of the `accounts` shard; null unless the group spans markets. */
  readonly accounts: ShardHead | null
  readonly funds: Map<number, Funds>
  /** By `holdingKey`. */
  readonly holdings: Map<string, Holding>
  /** After the last queued action: of the group's markets, and of those in which its accounts have margin. */
  readonly fundings: ReadonlyMap<number, FundingState>
  /** Existing orders, by hash and by `saltKey`. */
  readonly byHash: Map<string, StoredOrder>
  readonly bySalt: Map<string, StoredOrder>
  /** Hashes of live orders, oldest first, by `holdingKey`; read only for commands that cancel all orders. */
  readonly live: Map<string, readonly string[]>
  /** Of accounts that cancel all orders: the markets in which they have live orders. */
  readonly marketsWithOrders: ReadonlyMap<number, readonly number[]>
  /** Commands that were executed before, by `requestKey`. */
  readonly requests: Map<string, StoredRequest>
  /** Live orders of all markets with a label that a placement of the group has, by `labelKey`: more than one only after a rollback. */
  readonly labelled: Map<string, readonly LabelledOrder[]>
  /** Session keys that signed orders of the group, by `signerKey`. */
  readonly signers: ReadonlyMap<string, SigningKeyRow>
}
