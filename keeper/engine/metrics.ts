/** The Prometheus metrics of the engine. */

import type { Registry } from 'prom-client'
import type { Entry } from '../../domain/exchange/apply.ts'
import { hexOf, STATE_VERSION } from '../../domain/exchange/state-version.ts'
import { createRegistry, type Instruments, LATENCY_SECONDS } from '../../service/metrics.ts'
import type { ExchangeCommand } from './commands.ts'
import { COMMAND_CLASSES, type CommandClass } from './fair-queue.ts'
import type { OwnerObserver } from './owner.ts'

const GROUP_SIZES = [1, 2, 5, 10, 20, 50, 100, 200, 500]
/** Fine around the bounds of a pause: 99.9 % of the samples below 20 ms, all below 150 ms. */
const PAUSE_SECONDS = [
  0.001, 0.002, 0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.075, 0.1, 0.125, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5,
  0.75, 1, 2,
]
/** A number holds this many hexadecimal digits exactly. */
const DIGEST_DIGITS = 12
const DECIDE_SECONDS = [0.00001, 0.00003, 0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3]

export interface EngineMetrics extends OwnerObserver<ExchangeCommand, Entry> {
  readonly registry: Registry
  turnStarted(marketId: number, lateMs: number): void
  clockSkew(seconds: number): void
  /** A sample of the event loop came this much too late. */
  paused(lateMs: number): void
  /** The database has refused a row of a table of readers. */
  rowRefused(): void
  /** Values that are read at each scrape. */
  observe(read: EngineReadings): void
}

export interface EngineReadings {
  readonly waiting: (of: CommandClass) => number
  readonly isOwner: () => boolean
  readonly stored: () => { readonly head: number; readonly digest: string }
  readonly lagMs: () => number
}

const ORDERS = [1, 2, 5, 10, 20, 50, 100, 200, 400, 800]
const PARTS = [1, 2, 3, 4, 5, 8]

/** Metrics of the markets from stored rows. */
function rowMetrics({ counter, histogram }: Instruments): (entry: Entry) => void {
  const orders = histogram('engine_batch_orders', 'Orders filled by a batch', ORDERS, ['market'])
  const parts = histogram('engine_batch_parts', 'Parts of a batch, each one transaction', PARTS, ['market'])
  const triggered = counter('engine_orders_triggered_total', 'Conditional orders triggered by a mark', [
    'market',
  ])
  const failures = counter(
    'engine_liquidation_failures_total',
    'Inheritances and deleveragings that were dropped or had no effect',
    ['market', 'reason'],
  )
  return ({ shard, row }) => {
    const market = shard.slice(1)
    if (row.kind === 'batch_cleared') {
      orders.observe({ market }, row.fills.length)
      parts.observe({ market }, row.parts)
    } else if (row.kind === 'order_triggered') triggered.inc({ market })
    else if (row.kind === 'liquidation_changed' && row.step === 'failed')
      failures.inc({ market, reason: row.reason.replaceAll(' ', '_') })
  }
}

export function createMetrics(): EngineMetrics {
  const { registry, instruments } = createRegistry()
  const { counter, gauge, histogram, computed } = instruments
  const decided = histogram(
    'engine_decide_seconds',
    'Processor time of deciding a command and applying its rows',
    DECIDE_SECONDS,
    ['kind'],
  )
  const rows = counter('engine_rows_total', 'Rows that were decided', ['kind'])
  const groups = histogram('engine_group_commands', 'Commands of a stored group', GROUP_SIZES)
  const appends = histogram('engine_append_seconds', 'Duration of an append', LATENCY_SECONDS)
  const writes = histogram(
    'engine_tables_seconds',
    'Duration of a write of the tables of readers',
    LATENCY_SECONDS,
  )
  const refused = counter(
    'engine_rows_refused_total',
    'Rows that the database refused and that tables of readers lack',
  )
  const late = histogram('engine_turn_lateness_seconds', 'How late a turn began', LATENCY_SECONDS)
  const marketLate = gauge('engine_market_lateness_seconds', "How late the market's last turn began", [
    'market',
  ])
  const marketTurn = gauge(
    'engine_market_turn_timestamp_seconds',
    "Time at which the market's last turn began",
    ['market'],
  )
  const waits = histogram('engine_queue_seconds', 'Wait of a command for its decision', LATENCY_SECONDS, [
    'class',
  ])
  const pauses = histogram(
    'engine_pause_seconds',
    'How late samples of the event loop came, every 10 ms',
    PAUSE_SECONDS,
  )
  const noteRow = rowMetrics(instruments)
  const skew = gauge('engine_clock_skew_seconds', 'System time less database time')
  return {
    registry,
    waited: (of, ms) => waits.observe({ class: of }, ms / 1000),
    decided({ kind }, ms, { length: count }) {
      decided.observe({ kind }, ms / 1000)
      if (count > 0) rows.inc({ kind }, count)
    },
    stored(commands, entries, ms) {
      groups.observe(commands)
      appends.observe(ms / 1000)
      for (const entry of entries) noteRow(entry)
    },
    written: (_rows, ms) => writes.observe(ms / 1000),
    rowRefused: () => refused.inc(),
    turnStarted(marketId, lateMs) {
      const seconds = Math.max(0, lateMs) / 1000
      const market = String(marketId)
      late.observe(seconds)
      marketLate.set({ market }, seconds)
      marketTurn.setToCurrentTime({ market })
    },
    clockSkew: (seconds) => skew.set(seconds),
    paused: (lateMs) => pauses.observe(lateMs / 1000),
    observe({ waiting, isOwner, stored, lagMs }) {
      for (const of of COMMAND_CLASSES)
        computed(`engine_waiting_${of}`, `Commands of the class ${of} that wait`, () => waiting(of))
      computed('engine_is_owner', '1 while this process owns the journal', () => (isOwner() ? 1 : 0))
      computed(
        'engine_head',
        'Last group that this process has applied and knows to be stored',
        () => stored().head,
      )
      computed(
        'engine_digest',
        'First digits of the digest of the state at engine_head: members with equal heads and state versions have equal ones',
        () => Number.parseInt(hexOf(stored().digest).slice(0, DIGEST_DIGITS), 16),
      )
      computed(
        'engine_state_version',
        'Version of the layout of the state; members have different ones during an upgrade',
        () => STATE_VERSION,
      )
      computed(
        'engine_follower_lag_seconds',
        'Time since this process has seen the head of the journal; 0 for the owner',
        () => lagMs() / 1000,
      )
    },
  }
}
