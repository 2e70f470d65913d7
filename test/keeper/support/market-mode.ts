/** Sets the exchange's own restriction of the market, as its operator does. */

import { marketShard } from '../../../domain/journal/journal-row.ts'
import { appendRows, lockShard } from '../../support/rows/journal.ts'
import type { MarketFixture } from './market-fixture.ts'

export const restrictMarket = ({ db, spec }: MarketFixture, mode: 'open' | 'halted'): Promise<void> =>
  db.transaction().execute(async (tx) => {
    const head = await lockShard(tx, marketShard(spec.marketId))
    await tx.updateTable('markets').set({ mode }).execute()
    await appendRows(tx, head, [{ kind: 'market_restricted', mode, why: 'operator' }])
  })
