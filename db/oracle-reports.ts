/** The `oracle_reports` table: the latest signed report of each market. */
import type { OracleReport } from '../domain/settlement/settlement.ts'
import type { Db } from './client.ts'

/** Stores the market's latest report. A report that is not newer than the stored one is dropped. */
export async function publishReport(db: Db, marketId: number, report: OracleReport): Promise<void> {
  const row = {
    price: report.price,
    observed_at: report.observedAt,
    signatures: report.signatures,
    received_at: Date.now(),
  }
  await db
    .insertInto('oracle_reports')
    .values({ market_id: marketId, ...row })
    .onConflict((conflict) =>
      conflict
        .column('market_id')
        .doUpdateSet(row)
        .where('oracle_reports.observed_at', '<', report.observedAt),
    )
    .execute()
}
