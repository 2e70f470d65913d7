/** Announces other fee rates of a market for a span of time. */

import { marketShard } from '../domain/journal/journal-row.ts'
import {
  changeFees,
  type FeeChange,
  type FeeRefusal,
  type FeeSchedule,
  toStoredFees,
} from '../domain/market/fee-periods.ts'
import { termsAt } from '../domain/market/in-force.ts'
import type { MarketSpec } from '../domain/market/market.ts'
import { type Millis, maxOf } from '../domain/units.ts'
import type { Verdict } from '../domain/verdict.ts'
import type { Db } from './client.ts'
import { appendRows, lockShard } from './journal.ts'
import { TERMS_COLUMNS, toMarketTerms } from './terms.ts'

/** `now`: the database's clock. With `isDryRun` nothing is stored. */
export async function announceFees(
  db: Db,
  listed: MarketSpec,
  change: FeeChange,
  { now, isDryRun }: { readonly now: Millis; readonly isDryRun: boolean },
): Promise<Verdict<FeeSchedule, FeeRefusal>> {
  const { marketId } = listed
  return db.transaction().execute(async (tx) => {
    const head = await lockShard(tx, marketShard(marketId))
    const row = await tx
      .selectFrom('markets')
      .select(['last_as_of', ...TERMS_COLUMNS])
      .where('market_id', '=', marketId)
      .executeTakeFirstOrThrow()
    const terms = toMarketTerms(row, listed)
    // A batch may be as of a later time than this clock: what it charged stays.
    const at = maxOf(now, row.last_as_of as Millis)
    const from = maxOf(change.from, at)
    const { spec } = termsAt(listed, terms, from)
    const verdict = changeFees(spec, terms.fees, { ...change, from }, at)
    if (!verdict.ok || isDryRun) return verdict
    const fee_periods = toStoredFees(verdict.value)
    await tx
      .updateTable('markets')
      .set({ fee_periods: JSON.stringify(fee_periods) })
      .where('market_id', '=', marketId)
      .execute()
    await appendRows(tx, head, [{ kind: 'fees_announced', at, fee_periods }])
    return verdict
  })
}
