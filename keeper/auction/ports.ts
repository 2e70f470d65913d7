/** What the mark and the auction of a market read and write. */

import type { Fence } from '../../db/fence.ts'
import type { JournalEntry } from '../../db/journal.ts'
import type { SessionReport, SingleAction } from '../../domain/actions/action.ts'
import type { MarketPlan } from '../../domain/auction/batch-plan.ts'
import type { SettlementBacklog } from '../../domain/auction/settlement-pace.ts'
import type { BookOrder } from '../../domain/book/market-book.ts'
import type { MarketTerms } from '../../domain/market/in-force.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import type { ProtectionSchedule } from '../../domain/market/price-protection.ts'
import type { OpenOrder } from '../../domain/orders/open-order.ts'
import type { Funds } from '../../domain/orders/recompute-reservations.ts'
import type { Position } from '../../domain/positions/position.ts'
import type { PriceAverages } from '../../domain/prices/averages.ts'
import type { FundingState } from '../../domain/prices/funding-state.ts'
import type { UsedReport } from '../../domain/prices/report.ts'
import type { OracleReport } from '../../domain/settlement/settlement.ts'
import type {
  Address,
  MarketId,
  Millis,
  Price,
  Quote,
  Rate,
  Seconds,
  Seq,
  Ticks,
  UserId,
} from '../../domain/units.ts'

/** Everything that can make a market's next auction differ from its last one. One cheap read, without a lock. */
export interface MarketSnapshot {
  /** The database's clock when the snapshot was read. */
  readonly now: Millis
  readonly head: Seq
  /** Parameters, mode, close and fees, with announced changes. */
  readonly terms: MarketTerms
  /** While reservations are computed again at another taker rate: the account up to which that is done. */
  readonly reservingAfter: UserId | null
  readonly lastBatchId: number
  /** The head of the journal in the auction of the last batch; 0 if there is none. */
  readonly lastBatchHead: Seq
  readonly lastAsOf: Millis
  readonly priceProtection: ProtectionSchedule
  /** At which the premium is measured, as the operator has set it; null: by the rule. */
  readonly impactNotional: Quote | null
  readonly lastPrice: { readonly price: Ticks; readonly at: Millis } | null
  /** The mark that is held until every order that it triggers has been triggered; null if the mark moves. */
  readonly heldMark: Price | null
  readonly report: OracleReport | null
  /** The last report of the market's feed that an action uses, queued or mined. */
  readonly usedReport: UsedReport | null
  /** After the last queued action. */
  readonly funding: FundingState
  /** The latest report of the market's session feed. */
  readonly session: SessionReport | null
  /** Accounts whose positions a queued inheritance or deleveraging, or an adjustment in flight, may change. */
  readonly touched: ReadonlySet<UserId>
  /** The most that adjustments in flight take out of the market's pool. */
  readonly removals: Quote
  /** The end of the bank's last pause; 0 if there was none. */
  readonly pauseEndsAt: Seconds
  /** The account that inherits positions, and the most notional that it may have; null if the market has none. */
  readonly backstop: { readonly address: Address; readonly cap: Quote } | null
  readonly backlog: SettlementBacklog
}

/** A market inside a transaction that holds its shard's lock and a valid lease. */
export interface MarketTransaction {
  readonly snapshot: MarketSnapshot
  /** The inheritances and deleveragings in the queue that are not mined, in their order. */
  pendingMoves(): Promise<readonly SingleAction[]>
  users(addresses: Iterable<Address>): Promise<ReadonlyMap<Address, UserId>>
  freeOf(account: UserId): Promise<Quote>
  /** Journal rows after `seq`; null if there are too many to replay. */
  rowsAfter(seq: number): Promise<readonly JournalEntry[] | null>
  /** All orders that are open or wait for a trigger, and the matched positions that are not closed. */
  loadBook(): Promise<{
    /** Can be iterated once. */
    readonly orders: Iterable<BookOrder>
    readonly positions: ReadonlyMap<UserId, Position>
    /** Accounts in liquidation with the numbers of their liquidations, by number. */
    readonly liquidating: readonly (readonly [UserId, Seq])[]
  }>
  matchedPositions(accounts: ReadonlySet<UserId>): Promise<ReadonlyMap<UserId, Position>>
  /** What accounts can pay with after what the transaction has saved. A plan that reserves more must have read it of all its accounts at once. */
  funds(accounts: ReadonlySet<UserId>): Promise<ReadonlyMap<UserId, Funds>>
  orders(orderIds: readonly string[]): Promise<ReadonlyMap<Seq, OpenOrder>>
  /** Every order of the accounts in this market that has not ended. */
  liveOrders(accounts: ReadonlySet<UserId>): Promise<readonly OpenOrder[]>
  /** Partial slots held by live orders, by account. */
  slots(accounts: ReadonlySet<UserId>): Promise<ReadonlyMap<UserId, Set<number>>>
  /** Writes a plan: its orders, batch, reservations and journal rows. */
  save(plan: MarketPlan): Promise<void>
  holdMark(mark: Price | null): Promise<void>
  /** As the last mark left them. */
  averages(): Promise<PriceAverages>
  saveAverages(averages: PriceAverages): Promise<void>
  /** Records how far reservations are computed again at this taker rate; null: all are. */
  setReserving(fee: Rate, after: UserId | null): Promise<void>
}

export interface AuctionStore {
  snapshot(spec: MarketSpec): Promise<MarketSnapshot>
  /** As the last owner of the market's marks stored them. */
  averages(marketId: MarketId): Promise<PriceAverages>
  /**
   * Runs `work` in one transaction, which commits what `work` saves. `work` runs again, on a new snapshot, if an account can no longer pay
   * for what it has saved: it must continue with the memory that it has changed, not with the one before.
   */
  transaction<T>(
    spec: MarketSpec,
    fence: Fence,
    work: (transaction: MarketTransaction) => Promise<T>,
  ): Promise<T>
}
