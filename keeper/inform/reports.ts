/**
 * Sends the engine the newest verified reports of all markets, as readers see them, and halts of feeds. It repeats
 * them, because a new engine process has none.
 */

import { sql } from 'kysely'
import type { Db } from '../../db/client.ts'
import { type StoredSession, sessionColumn, toSession } from '../../db/oracle-reports.ts'
import type { MarketId, Millis, Price } from '../../domain/units.ts'
import { type BackgroundPorts, BackgroundTask } from '../background-task.ts'
import type { InformReports } from '../engine/facts.ts'
import type { Engine } from '../engine/link/engine.ts'

export interface ReportInformerPorts extends BackgroundPorts {
  readonly db: Db
  readonly engine: Pick<Engine, 'inform'>
}

export interface ReportInformer {
  /** After each write of reports, and at least every `REPEAT_MS`: sends what has changed, in the background. */
  poll(): void
  settled(): Promise<void>
}

/** Bound of the time until a new owner of the engine knows reports that have not changed. */
const REPEAT_MS = 500

interface ReportsRow {
  readonly market_id: number
  readonly price: bigint | null
  readonly observed_at: number | null
  readonly signatures: string | null
  readonly session: StoredSession
}

export function createReportInformer(ports: ReportInformerPorts): ReportInformer {
  const { db, engine, clock } = ports
  const task = new BackgroundTask(ports, 'informing the engine of reports failed; will retry', {})
  const sent = new Map<MarketId, { readonly key: string; readonly at: number }>()

  async function pass(): Promise<void> {
    const facts = await loadReports(db)
    const now = clock.now()
    const due = facts.filter((fact) => {
      const last = sent.get(fact.marketId)
      return last === undefined || last.key !== keyOf(fact) || Math.abs(now - last.at) >= REPEAT_MS
    })
    await Promise.all(
      due.map(async (fact) => {
        await engine.inform(fact)
        sent.set(fact.marketId, { key: keyOf(fact), at: now })
      }),
    )
  }

  return {
    poll: () => task.poll(0, pass),
    settled: () => task.settled(),
  }
}

const keyOf = ({ report, session }: InformReports): string =>
  [report?.price, report?.observedAt, report?.signatures, session?.endsAt, session?.observedAt].join()

/** Halted feeds have no report. */
export async function loadReports(db: Db): Promise<InformReports[]> {
  const { rows } = await sql<ReportsRow>`
    select m.market_id, r.price, r.observed_at, r.signatures, ${sql.raw(sessionColumn('m.market_id'))} as session
    from markets m
    left join oracle_reports r on r.market_id = m.market_id and r.feed = 'index' and r.status <> 'halted' and r.price is not null
  `.execute(db)
  return rows.map(({ market_id, price, observed_at, signatures, session }) => ({
    kind: 'inform_reports',
    marketId: market_id as MarketId,
    report:
      price === null
        ? null
        : {
            price: price as Price,
            observedAt: observed_at as Millis,
            signatures: signatures as `0x${string}`,
          },
    session: toSession(session),
  }))
}
