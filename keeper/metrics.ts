/** The Prometheus metrics of the keeper. */
import type { Registry } from 'prom-client'
import { createRegistry, type Instruments, LATENCY_SECONDS } from '../service/metrics.ts'
import type { BackupMetrics } from './backups.ts'
import type { FigureMetrics, MarketFigures } from './figures/ports.ts'
import type { Metrics } from './ports.ts'
import type { PriceMetrics } from './prices/ports.ts'

export interface KeeperMetrics extends Metrics, PriceMetrics, FigureMetrics, BackupMetrics {
  readonly registry: Registry
  /** `count` is called at each scrape: jobs of relayer lanes by state; empty while the queue is not open. */
  observeJobs(count: CountJobs): void
}

type CountJobs = () => Promise<ReadonlyMap<string, number>>

const instrumentsOf = ({ counter, gauge, histogram }: Instruments) => ({
  stages: histogram('keeper_settlement_seconds', 'Time between two stages of a settlement', LATENCY_SECONDS, [
    'stage',
  ]),
  ended: counter('keeper_transactions_total', 'Transactions with a receipt', ['outcome']),
  inFlight: gauge('keeper_transactions_in_flight', 'Transactions signed and without a receipt', ['lane']),
  queued: gauge('keeper_actions_queued', 'Actions matched and not yet signed', ['lane']),
  balance: gauge('keeper_relayer_balance', 'Native balance of a relayer, whole units', ['lane']),
  balanceTime: gauge(
    'keeper_relayer_balance_timestamp_seconds',
    'Time at which keeper_relayer_balance was read',
    ['lane'],
  ),
  freezeRequests: counter('keeper_freeze_requests_total', 'Freeze requests that were seen in force', [
    'market',
  ]),
  freezePending: gauge('keeper_freeze_pending', '1 while a freeze request of the market is in force', [
    'market',
  ]),
  finalMissing: gauge('keeper_final_report_missing', '1 while a closed market has no final report', [
    'market',
  ]),
  block: gauge('keeper_chain_block', 'Newest block that the keeper has fetched'),
  clockSkew: gauge('keeper_clock_skew_seconds', 'System time less database time'),
  blockTime: gauge('keeper_chain_block_time_seconds', 'Timestamp of keeper_chain_block'),
  backup: gauge(
    'keeper_backup_timestamp_seconds',
    'Time at which the newest base backup was complete; 0 without one',
  ),
  archived: gauge(
    'keeper_wal_archived_timestamp_seconds',
    'Time at which the primary has last archived WAL; 0 before the first',
  ),
  reports: counter('keeper_price_reports_total', 'Price reports published'),
  reportSeconds: histogram(
    'keeper_price_report_seconds',
    'Time from the observation of a price until its report is usable',
    LATENCY_SECONDS,
  ),
  absent: gauge('keeper_price_feeds_absent', 'Feeds without a new report', ['reason']),
  dropped: counter('keeper_price_readings_dropped_total', 'Readings of price sources that were dropped', [
    'source',
    'reason',
  ]),
  signerFaults: counter('keeper_signer_faults_total', 'Signatures of price reports that did not count', [
    'signer',
    'fault',
  ]),
})

/** By the name in `MarketFigures`. A figure that is null has no value. */
const FIGURES: Readonly<Record<keyof MarketFigures, readonly [name: string, help: string]>> = {
  liquidationsRunning: ['keeper_liquidations_running', 'Positions in liquidation'],
  liquidationsFailing: [
    'keeper_liquidations_failing',
    'Running liquidations with a last action that was dropped or had no effect',
  ],
  oldestLiquidation: ['keeper_liquidation_oldest_seconds', 'Age of the oldest liquidation; 0 if none runs'],
  backstopUse: ['keeper_backstop_use_ratio', "Notional of the backstop's position divided by its cap"],
  backstopBalance: ['keeper_backstop_balance', 'Free balance of the backstop, USDM'],
  deficit: ['keeper_market_deficit', 'Reported deficits of an ended market, USDM'],
  fundingRate: [
    'keeper_funding_rate',
    'Funding rate in force, a fraction of the oracle price per hour; absent while no rate is valid',
  ],
  fundingUpdatedAt: [
    'keeper_funding_updated_timestamp_seconds',
    'Time from which the last funding rate applies',
  ],
  fundingValidUntil: ['keeper_funding_valid_until_timestamp_seconds', 'Time at which it ends'],
}

export function createMetrics(): KeeperMetrics {
  const { registry, instruments } = createRegistry()
  const known = instrumentsOf(instruments)
  const figures = Object.entries(FIGURES).map(
    ([figure, [name, help]]) =>
      [figure as keyof MarketFigures, instruments.gauge(name, help, ['market'])] as const,
  )
  let countJobs: CountJobs = async () => new Map()
  instruments.collected('keeper_lane_jobs', 'Jobs of relayer lanes', 'state', () => countJobs())
  const label = (marketId: number) => ({ market: String(marketId) })
  return {
    registry,
    observeJobs(count) {
      countJobs = count
    },
    stage: (stage, seconds) => known.stages.observe({ stage }, seconds),
    transactionEnded: (outcome) => known.ended.inc({ outcome }),
    inFlight: (lane, count) => known.inFlight.set({ lane }, count),
    queued: (lane, count) => known.queued.set({ lane }, count),
    balance(lane, wei, at) {
      known.balance.set({ lane }, Number(wei) / 1e18)
      known.balanceTime.set({ lane }, at / 1000)
    },
    published(count, seconds) {
      known.reports.inc(count)
      known.reportSeconds.observe(seconds)
    },
    absent(counts) {
      known.absent.reset()
      for (const [reason, feeds] of counts) known.absent.set({ reason }, feeds)
    },
    dropped: (source, reason) => known.dropped.inc({ source, reason }),
    signerFault: (signer, fault) => known.signerFaults.inc({ signer, fault }),
    figures(marketId, values) {
      for (const [figure, gauge] of figures) {
        const value = values?.[figure] ?? null
        if (value === null) gauge.remove(label(marketId))
        else gauge.set(label(marketId), value)
      }
    },
    freezeRequested: (marketId) => known.freezeRequests.inc(label(marketId)),
    freezePending: (marketId, isPending) => known.freezePending.set(label(marketId), isPending ? 1 : 0),
    finalReportMissing: (marketId, isMissing) => known.finalMissing.set(label(marketId), isMissing ? 1 : 0),
    backups(completedAt, archivedAt) {
      known.backup.set(completedAt / 1000)
      known.archived.set(archivedAt / 1000)
    },
    clockSkew: (seconds) => known.clockSkew.set(seconds),
    head(block, time) {
      known.block.set(block)
      known.blockTime.set(time / 1000)
    },
  }
}
