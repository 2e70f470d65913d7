/** Publishes the index of one market in place of the keeper: for a replay or a test. */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { isConnectionError } from '../api/database-errors.ts'
import type { Db } from '../db/client.ts'
import { deleteLease, seizeLease } from '../db/leases.ts'
import { indexLease, latestReport, publishReports } from '../db/oracle-reports.ts'
import type { Millis, Price } from '../domain/units.ts'
import { feedIdOf } from './deploy.ts'
import type { ReportSigner } from './oracle.ts'

export interface FeedOverride {
  /** From the next report on, every report has this price, until it is set again. */
  setPrice(price: Price): void
  /** Returns the feed to the keeper, whose simulated source continues from the last price. */
  release(): Promise<void>
}

const LEASE_MS = 5_000
const REPORT_EVERY_MS = 250

/**
 * Keeps the lease of the market's feed and publishes four reports per second. The first price is the latest published one. `isPassing`: whether
 * the next report may succeed after the error.
 */
export function overrideFeed(
  { db, oracle }: { readonly db: Db; readonly oracle: ReportSigner },
  marketId: number,
  isPassing: (error: unknown) => boolean = isConnectionError,
): FeedOverride {
  const name = indexLease(marketId)
  const owner = randomUUID()
  let price: Price | null = null
  let stopped = false

  const report = async (): Promise<void> => {
    await seizeLease(db, { name, owner, now: Date.now(), lifeMs: LEASE_MS })
    const published = await latestReport(db, { marketId, feed: 'index' })
    // `setPrice` may have run while the query did.
    price ??= published?.price ?? null
    if (price === null) return
    const signed = oracle.sign(feedIdOf(marketId), price, Date.now() as Millis)
    await publishReports(db, [{ marketId, feed: 'index', report: signed, readings: [] }])
  }
  const loop = (async () => {
    while (!stopped) {
      // A report that a restart of the database loses is followed by the next one.
      await report().catch((error: unknown) => {
        if (!isPassing(error)) throw error
      })
      await sleep(REPORT_EVERY_MS)
    }
  })()
  return {
    setPrice(next) {
      price = next
    },
    async release() {
      stopped = true
      await loop
      await deleteLease(db, name, owner)
    },
  }
}
