/** A market's price feed in other hands than the simulated oracle's: a replay's, or a test's. */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Db } from '../db/client.ts'
import type { Millis, Price } from '../domain/units.ts'
import { feedIdOf } from './deploy.ts'
import { feedLease, latestPrice, publish, type ReportSigner } from './oracle.ts'

export interface TakenFeed {
  /** From the next report on, and until the next price is said. */
  say(price: Price): void
  /** Gives the feed back to the simulated oracle, which goes on from the last price. */
  release(): Promise<void>
}

const LEASE_MS = 5_000
const REPORT_EVERY_MS = 250

/** Holds the lease on the market's price and reports the latest one said, or the one found, until it is released. */
export function takeOverFeed(
  { db, oracle }: { readonly db: Db; readonly oracle: ReportSigner },
  marketId: number,
): TakenFeed {
  const name = feedLease(marketId)
  const owner = randomUUID()
  let price: Price | null = null
  let stopped = false

  const report = async (): Promise<void> => {
    const row = { owner, token: 1, expires_at: Date.now() + LEASE_MS }
    await db
      .insertInto('leases')
      .values({ name, ...row })
      .onConflict((conflict) => conflict.column('name').doUpdateSet(row))
      .execute()
    const found = await latestPrice(db, marketId)
    // A price may have been said meanwhile.
    price ??= found
    if (price === null) return
    await publish(db, marketId, oracle.sign(feedIdOf(marketId), price, Date.now() as Millis))
  }
  const loop = (async () => {
    while (!stopped) {
      await report()
      await sleep(REPORT_EVERY_MS)
    }
  })()
  return {
    say(next) {
      price = next
    },
    async release() {
      stopped = true
      await loop
      await db.deleteFrom('leases').where('name', '=', name).where('owner', '=', owner).execute()
    },
  }
}
