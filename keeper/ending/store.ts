/** Stores claims and final prices of ended markets in Postgres. */
import { sql } from 'kysely'
import { usedReportSql } from '../../db/actions.ts'
import type { Db } from '../../db/client.ts'
import { checkFence } from '../../db/fence.ts'
import { ENDING_COLUMNS } from '../../db/market-endings.ts'
import { keepReport, latestReport } from '../../db/oracle-reports.ts'
import {
  arePositionsCurrent,
  minedPosition,
  type OpenPositionRow,
  openPositions,
} from '../../db/positions.ts'
import { keysOfLane } from '../../db/relayers.ts'
import { TERMS_SQL, type TermsColumns, toMarketTerms } from '../../db/terms.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import { fromStoredSpec, type StoredSpec } from '../../domain/market/stored-spec.ts'
import type { Feed } from '../../domain/prices/feed.ts'
import { type EndingColumns, toEnding } from '../../domain/risk/stored-ending.ts'
import type { OracleReport } from '../../domain/settlement/settlement.ts'
import type { Address, FundingIndex, Millis, Price, UserId } from '../../domain/units.ts'
import type { TransactionStatus } from '../relayer/ports.ts'
import type { EndingMarket, EndingStore, OpenPosition } from './ports.ts'
import { claimPurposes } from './purposes.ts'

/** Blocks after which a claim counts as paid. A deeper fork can take it back: the account then gets a second claim, and one claim reverts. */
const FORK_DEPTH = 64

/** The feed whose report ends the market. */
const feedOf = ({ kind }: MarketSpec): Feed => (kind === 'perpetual' ? 'index' : 'final')

interface MarketRow extends EndingColumns, TermsColumns {
  readonly spec: StoredSpec
  readonly funding_index: bigint
  readonly used_price: bigint | null
  readonly used_at: number | null
  readonly is_finalizing: boolean
}

const COLUMNS = ENDING_COLUMNS.map((column) => `m.${column}`).join(', ')

const toMarket = (row: MarketRow): EndingMarket => {
  const spec = fromStoredSpec(row.spec)
  return {
    spec,
    terms: toMarketTerms(row, spec),
    ending: toEnding(row),
    finalPrice: row.ended && (BigInt(row.ended.price) as Price),
    fundingIndex: row.funding_index as FundingIndex,
    usedReport:
      row.used_price === null ? null : { price: row.used_price as Price, observedAt: row.used_at as Millis },
    isFinalizing: row.is_finalizing,
  }
}

const toOpenPosition = (row: OpenPositionRow): OpenPosition => ({
  userId: row.user_id as UserId,
  account: row.address as Address,
  position: minedPosition(row),
})

interface SentRow {
  readonly status: TransactionStatus
  readonly signed_at: number
  readonly is_ingested: boolean
  readonly raw: string
  readonly block: number | null
}

interface ReportRow {
  readonly price: bigint
  readonly observed_at: number
  readonly signatures: string
}

const toReport = ({ price, observed_at, signatures }: ReportRow): OracleReport => ({
  price: price as Price,
  observedAt: observed_at as Millis,
  signatures: signatures as `0x${string}`,
})

export const createEndingStore = (db: Db): EndingStore => ({
  async markets(blockTime) {
    const { rows } = await sql<MarketRow>`
      select m.spec, ${sql.raw(TERMS_SQL)}, ${sql.raw(COLUMNS)}, used.used_price, used.used_at,
        coalesce((
          select funding_index from funding_states f where f.market_id = m.market_id order by f.action_id desc limit 1
        ), 0) as funding_index,
        exists (
          select from actions a
          where a.market_id = m.market_id and a.kind = 'finalize_market' and a.status in ('QUEUED', 'SIGNED', 'SUBMITTED')
        ) as is_finalizing
      from markets m left join lateral (${sql.raw(usedReportSql('m.market_id'))}) used on true
      where case when m.ended is null
        then m.expires_at between 1 and ${blockTime}::bigint or m.settling_at between 1 and ${blockTime}::bigint
        else exists (select from read.positions p where p.market_id = m.market_id and p.size <> 0)
      end
      order by m.market_id
    `.execute(db)
    return rows.map(toMarket)
  },

  finalReport: (marketId) => latestReport(db, { marketId, feed: 'final' }),

  async ownReports(marketId, since) {
    const rows = await db
      .selectFrom('recent_reports')
      .select(['price', 'observed_at', 'signatures'])
      .where('market_id', '=', marketId)
      .where('feed', '=', 'index')
      .where('observed_at', '>=', since)
      .orderBy('observed_at')
      .execute()
    return rows.map(toReport)
  },

  keep: (fence, spec, report) =>
    db.transaction().execute(async (tx) => {
      await checkFence(tx, fence)
      await keepReport(tx, { marketId: spec.marketId, feed: feedOf(spec) }, report)
    }),

  async proofOf(spec, { price, observedAt }) {
    const kept = await db
      .selectFrom('used_reports')
      .select('signatures')
      .where('market_id', '=', spec.marketId)
      .where('feed', '=', feedOf(spec))
      .where('observed_at', '=', observedAt)
      .where('price', '=', price)
      .executeTakeFirst()
    return { price, observedAt, signatures: (kept?.signatures ?? '0x') as `0x${string}` }
  },

  async lastSent(lane, purpose) {
    const { rows } = await sql<SentRow>`
      select t.status, t.signed_at, t.raw, t.block, coalesce(t.block < p.next_block, false) as is_ingested
      from relayer_transactions t join chain_progress p on p.chain_id = t.chain_id
      where t.purpose like 'end:%' and t.purpose = ${purpose} and t.relayer = any(${keysOfLane(lane)}) and t.chain_id = ${lane.chainId}
      order by t.signed_at desc limit 1
    `.execute(db)
    const [row] = rows
    return row === undefined
      ? null
      : {
          ...{ status: row.status, signedAt: row.signed_at as Millis, isIngested: row.is_ingested },
          ...{ raw: row.raw as `0x${string}`, block: row.block },
        }
  },

  async positions(marketId, after, limit) {
    if (!(await arePositionsCurrent(db, marketId))) return null
    return (await openPositions(db, marketId, after, limit)).map(toOpenPosition)
  },

  async unclaimed(lane, marketId, { after, limit, retryAfter }) {
    if (!(await arePositionsCurrent(db, marketId))) return null
    const { rows } = await sql<OpenPositionRow>`
      select p.*, u.address from read.positions p join users u on u.user_id = p.user_id
      where p.market_id = ${marketId} and p.size <> 0 and p.user_id > ${after} and not exists (
        select from relayer_transactions t join chain_progress c on c.chain_id = t.chain_id
        where t.purpose like 'end:%' and t.purpose = ${claimPurposes(marketId)} || p.user_id::text
          and t.relayer = any(${keysOfLane(lane)}) and t.chain_id = ${lane.chainId}
          and (
            t.status in ('SIGNED', 'BROADCAST')
            or (t.status = 'MINED' and (t.block is null or t.block >= c.next_block - ${FORK_DEPTH}::bigint))
            or (t.status = 'REVERTED' and t.signed_at > ${retryAfter}::bigint)
          )
      )
      order by p.user_id limit ${limit}
    `.execute(db)
    return rows.map(toOpenPosition)
  },
})
