/** Applies final reports and haircuts to the write side, or rolls them back. The caller holds the lock of the market's shard. */
import type { Tx } from '../../db/client.ts'
import { loadFinalReport, setFinalReport, setHaircut } from '../../db/market-endings.ts'
import type { EndingChangedFact, HaircutFixedFact } from '../../domain/chain/facts.ts'
import type { EndingRow, StoredFinalReport } from '../../domain/journal/ending-rows.ts'
import { type JournalRow, marketShard } from '../../domain/journal/journal-row.ts'
import type { MinedAt } from '../../domain/settlement/settle-part.ts'
import type { LockedShards, RowPlace } from './locked-shards.ts'

export const isEndingRow = (row: JournalRow): row is EndingRow =>
  row.kind === 'final_price_reported' || row.kind === 'haircut_fixed'

interface EndingContext {
  readonly tx: Tx
  readonly shards: LockedShards
  readonly mined: MinedAt
}

export async function fixHaircut(
  context: EndingContext,
  { spec, haircut }: HaircutFixedFact,
): Promise<RowPlace> {
  const amounts = { pool: haircut.pool.toString(), owed: haircut.owed.toString() }
  await setHaircut(context.tx, spec.marketId, amounts)
  const row: EndingRow = { kind: 'haircut_fixed', rollback: false, ...amounts, ...context.mined }
  return context.shards.append(marketShard(spec.marketId), row)
}

/** The dispute window counts from the block of the first report. Null without a report. */
export async function reportFinalPrice(
  { tx, shards, mined }: EndingContext,
  { spec, report }: Pick<EndingChangedFact, 'spec' | 'report'>,
): Promise<RowPlace | null> {
  if (report === undefined) return null
  const before = await loadFinalReport(tx, spec.marketId)
  const after: StoredFinalReport = {
    price: report.price.toString(),
    observed_at: report.observedAt,
    reported_at: before?.reported_at ?? mined.at,
  }
  await setFinalReport(tx, spec.marketId, after)
  const row: EndingRow = { kind: 'final_price_reported', rollback: false, report: after, before, ...mined }
  return shards.append(marketShard(spec.marketId), row)
}

/** Returns the row that states the rollback. */
export async function rollBackEnding(tx: Tx, marketId: number, row: EndingRow): Promise<EndingRow> {
  if (row.kind === 'final_price_reported') await setFinalReport(tx, marketId, row.before)
  else await setHaircut(tx, marketId, null)
  return { ...row, rollback: true }
}
