/** What the keeper tells Prometheus. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { Metrics } from './ports.ts'

export interface KeeperMetrics extends Metrics {
  readonly registry: Registry
}

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1, 2.5, 5, 10]
const ORDERS = [1, 2, 5, 10, 20, 50, 100, 200, 400, 800]

function instruments(registers: [Registry]) {
  const histogram = <L extends string>(name: string, help: string, labelNames: L[], buckets: number[]) =>
    new Histogram({ name, help, labelNames, buckets, registers })
  const gauge = <L extends string>(name: string, help: string, labelNames: L[]) =>
    new Gauge({ name, help, labelNames, registers })
  return {
    turns: histogram('keeper_turn_seconds', 'A turn of a market that was not skipped', ['market'], SECONDS),
    orders: histogram('keeper_batch_orders', 'Orders filled by a batch', ['market'], ORDERS),
    triggered: new Counter({
      name: 'keeper_orders_triggered_total',
      help: 'Conditional orders that a mark has triggered',
      labelNames: ['market'],
      registers,
    }),
    parts: histogram('keeper_batch_parts', 'Transactions of a batch', ['market'], [1, 2, 3, 4, 5, 8]),
    stages: histogram(
      'keeper_settlement_seconds',
      'Time between two stages of a settlement',
      ['stage'],
      SECONDS,
    ),
    ended: new Counter({
      name: 'keeper_transactions_total',
      help: 'Transactions with a receipt',
      labelNames: ['outcome'],
      registers,
    }),
    inFlight: gauge('keeper_transactions_in_flight', 'Signed and without a receipt', ['lane']),
    queued: gauge('keeper_actions_queued', 'Matched and not yet signed', ['lane']),
    balance: gauge('keeper_relayer_balance', 'Native balance of a relayer, whole units', ['lane']),
    block: gauge('keeper_chain_block', 'Newest block that the keeper has seen', []),
    blockTime: gauge('keeper_chain_block_time_seconds', 'Its time', []),
  }
}

export function createMetrics(): KeeperMetrics {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const known = instruments([registry])
  const label = (marketId: number) => ({ market: String(marketId) })
  return {
    registry,
    turn: (marketId, seconds) => known.turns.observe(label(marketId), seconds),
    batch(marketId, orders, parts) {
      known.orders.observe(label(marketId), orders)
      known.parts.observe(label(marketId), parts)
    },
    triggered: (marketId, orders) => known.triggered.inc(label(marketId), orders),
    stage: (stage, seconds) => known.stages.observe({ stage }, seconds),
    transactionEnded: (outcome) => known.ended.inc({ outcome }),
    inFlight: (lane, count) => known.inFlight.set({ lane }, count),
    queued: (lane, count) => known.queued.set({ lane }, count),
    balance: (lane, wei) => known.balance.set({ lane }, Number(wei) / 1e18),
    head(block, time) {
      known.block.set(block)
      known.blockTime.set(time / 1000)
    },
  }
}
