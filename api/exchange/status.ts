/** The state of the exchange, as REST and the live feed show it. */
import { listAnnouncements, openMaintenance } from '../../db/announcements.ts'
import type { Db } from '../../db/client.ts'
import { toMarketTerms } from '../../db/terms.ts'
import { modeInForce } from '../../domain/market/changes.ts'
import { fromStoredSpec } from '../../domain/market/stored-spec.ts'
import type { Millis } from '../../domain/units.ts'
import { headView, windowView } from '../announcements/view.ts'
import { isoTime } from '../wire/amounts.ts'
import { exchangeStatus, type StatusRow } from './query.ts'

export interface StatusLimits {
  readonly chainId: number
  readonly oracleMaxAgeMs: number
  readonly chainMaxAgeMs: number
}

/** Maintenance windows that the state shows, at most. */
const MOST_WINDOWS = 20
/** The newest announcements that the topic `system` shows. */
const NEWEST = 10

export async function readStatus(db: Db, now: Millis, limits: StatusLimits) {
  const [{ markets, chain }, windows] = await Promise.all([
    exchangeStatus(db),
    openMaintenance(db, now, MOST_WINDOWS),
  ])
  const seen = chain === null ? null : Math.max(0, now - chain.completed_at)
  const fresh = seen !== null && seen <= limits.chainMaxAgeMs
  const views = markets.map((row) => marketStatus(row, now, fresh, limits))
  return {
    status: views.every(({ placements }) => placements) ? ('ok' as const) : ('degraded' as const),
    time: isoTime(now),
    chain: { chain_id: limits.chainId, block: chain?.head ?? null, seen_ms_ago: seen, fresh },
    maintenance: windows.map((row) => windowView(row, now)),
    markets: views,
  }
}

/** The state with the newest announcements that are not withdrawn. */
export async function readSystem(db: Db, now: Millis, limits: StatusLimits) {
  const [status, rows] = await Promise.all([
    readStatus(db, now, limits),
    listAnnouncements(db, { beforeId: null, limit: NEWEST }),
  ])
  const announcements = rows.filter(({ withdrawn_at }) => withdrawn_at === null).map(headView)
  return { ...status, announcements }
}

function marketStatus(row: StatusRow, now: Millis, isChainFresh: boolean, { oracleMaxAgeMs }: StatusLimits) {
  const age = row.observed_at === null ? null : Math.max(0, now - row.observed_at)
  const mode = modeInForce(toMarketTerms(row, fromStoredSpec(row.spec)), now)
  const isFresh = age !== null && age <= oracleMaxAgeMs
  return {
    market_id: row.market_id,
    symbol: row.symbol,
    mode,
    oracle_age_ms: age,
    oracle_fresh: isFresh,
    last_batch_id: row.last_batch_id,
    placements: isFresh && isChainFresh && mode === 'open',
    read_model_lag: row.lag,
  }
}
