/** What the jobs of a market keep in memory between two auctions: the book, fed from the journal, and the matched positions. */

import type { ActionLimits, AuctionView } from '../../domain/auction/action-basis.ts'
import { type Deferrals, NO_DEFERRALS } from '../../domain/auction/deferral.ts'
import { INITIAL_PACE } from '../../domain/auction/settlement-pace.ts'
import { MarketBook } from '../../domain/book/market-book.ts'
import type { MarketRow } from '../../domain/journal/journal-row.ts'
import { reservingSpec } from '../../domain/market/in-force.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import type { ReportRules } from '../../domain/prices/report.ts'
import { MarketPositions } from '../../domain/risk/market-positions.ts'
import type { Seq } from '../../domain/units.ts'
import type { MarketTransaction } from './ports.ts'

/** Shared by the mark and the auction of one market. */
export interface MarketMemory extends Mutable<ActionLimits> {
  /** Null before the first auction, during a transaction, and after an error. */
  view: MarketView | null
  /** Accounts that the auction leaves out for a time. Lost with the process: then all take part again. */
  deferrals: Deferrals
}

type Mutable<Of> = { -readonly [Name in keyof Of]: Of[Name] }

export const createMarketMemory = (rules: ReportRules | null = null): MarketMemory => ({
  view: null,
  pace: INITIAL_PACE,
  deferrals: NO_DEFERRALS,
  rules,
})

export interface MarketView extends AuctionView {
  readonly feed: MarketBook
  readonly positions: MarketPositions
}

/**
 * Updates the book and the matched positions to the locked journal head. Orders that a row returned to the book are read from the table,
 * by account. Everything is reloaded if there is no memory, or too many rows.
 */
export async function catchUp(
  spec: MarketSpec,
  transaction: MarketTransaction,
  before: MarketView | null,
): Promise<MarketView> {
  const { head, lastBatchHead, terms } = transaction.snapshot
  const rows = before === null ? null : await transaction.rowsAfter(before.seq)
  // Batches run only while all reservations are computed at the rate that is stored, so it is also the rate of every batch in `rows`.
  const reserving = reservingSpec(spec, terms.reservedFee)
  if (before === null || rows === null) {
    const { orders, positions, liquidating } = await transaction.loadBook()
    return {
      ...{ feed: new MarketBook(reserving, orders, liquidating), positions: new MarketPositions(positions) },
      ...{ seq: head, standingSeq: before?.standingSeq ?? lastBatchHead, cleared: before?.cleared ?? null },
    }
  }
  const { feed, positions } = before
  feed.reserveBy(reserving)
  for (const { seq, row } of rows) feed.apply(seq, row as MarketRow)
  feed.insertAll(await transaction.liveOrders(feed.drainStaleAccounts()))
  const changed = await transaction.matchedPositions(feed.drainChangedAccounts())
  for (const [account, position] of changed) positions.set(account, position)
  return { ...before, seq: head }
}

/** The view after `rows` rows that the market's own transaction has appended and that change neither an order nor a position. */
export function afterNeutralRows(view: MarketView, rows: number): MarketView {
  const seq = (view.seq + rows) as Seq
  return { ...view, seq, standingSeq: view.standingSeq === view.seq ? seq : view.standingSeq }
}
