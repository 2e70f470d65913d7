/** Finds the markets of orders that are to be cancelled, also of those whose placement was sent a moment ago. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { ArrivingPlacements } from './arriving-placements.ts'
import type { OrderMarketIndex } from './order-market-index.ts'
import type { TableProgress } from './table-progress.ts'

/**
 * Pauses before further look-ups of an order that does not exist: another process may be about to commit it. Together
 * they exceed a pause of another api that `arrival-times.ts` does not notice.
 */
export const PAUSES_MS = [50, 150, 300]

export interface FindOrdersPorts {
  readonly arrivals: Pick<ArrivingPlacements, 'untilSent'>
  readonly orderMarkets: Pick<OrderMarketIndex, 'marketsOf'>
  /** Orders that another process has placed are found once the tables contain them. */
  readonly tables: TableProgress
}

/** The markets of the orders by their hashes; hashes without an order are omitted. */
export async function findMarkets(
  { arrivals, orderMarkets, tables }: FindOrdersPorts,
  userId: number,
  hashes: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const isComplete = (markets: ReadonlyMap<string, number>): boolean =>
    hashes.every((hash) => markets.has(hash))
  let found = await orderMarkets.marketsOf(hashes)
  if (isComplete(found)) return found
  await Promise.all([arrivals.untilSent(userId), tables.caughtUp()])
  found = await orderMarkets.marketsOf(hashes)
  for (const pause of PAUSES_MS) {
    if (isComplete(found)) break
    await sleep(pause)
    found = await orderMarkets.marketsOf(hashes)
  }
  return found
}
