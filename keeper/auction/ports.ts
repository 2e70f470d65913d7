/** What the mark and the auction of a market read and write. */

import type { Fence } from '../../db/fence.ts'
import type { JournalEntry } from '../../db/journal.ts'
import type { SingleAction } from '../../domain/actions/action.ts'
import type { MarketPlan } from '../../domain/auction/batch-plan.ts'
import type { MarketSnapshot } from '../../domain/auction/market-snapshot.ts'
import type { BookOrder } from '../../domain/book/market-book.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import type { OpenOrder } from '../../domain/orders/open-order.ts'
import type { Funds } from '../../domain/orders/recompute-reservations.ts'
import type { Position } from '../../domain/positions/position.ts'
import type { PriceAverages } from '../../domain/prices/averages.ts'
import type { Address, MarketId, Price, Quote, Rate, Seq, UserId } from '../../domain/units.ts'

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
