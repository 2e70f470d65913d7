/** Wires the keeper: gives every job the adapters behind its ports. */
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { sql } from 'kysely'
import { createDb, createPool, type Db } from '../db/client.ts'
import { createLeases } from '../db/leases.ts'
import { loadMarkets } from '../db/markets.ts'
import { checkSchema } from '../db/migrator.ts'
import type { MarketSpec } from '../domain/market/market.ts'
import type { Address } from '../domain/units.ts'
import { systemClock } from '../service/clock.ts'
import { type Check, createReadiness, serveHealth } from '../service/health.ts'
import { killAt } from '../service/kill-point.ts'
import type { Logger } from '../service/logger.ts'
import { createCalls, createChain, createSigner } from './adapters/chain.ts'
import { createDatabaseClock, type DatabaseClock, MAX_SKEW_MS } from './adapters/database-clock.ts'
import { createWakeUps } from './adapters/wake-ups.ts'
import { createAuctionStore } from './auction/store.ts'
import type { Config } from './config.ts'
import { createFaucetStore } from './faucet/store.ts'
import { auctionJob, faucetJob, type Intervals, settlementJob } from './leader/leader-jobs.ts'
import { type LeaderLoop, runLeaderLoop } from './leader/leader-loop.ts'
import { createMetrics, type KeeperMetrics } from './metrics.ts'
import type { Signer, WakeUps } from './ports.ts'
import { watchBalances } from './relayer/balance-watch.ts'
import { createHeadWatch } from './relayer/head-watch.ts'
import type { RelayerLane } from './relayer/ports.ts'
import { createRelayerStore } from './relayer/store.ts'
import { createSettlementStore } from './settlement/store.ts'
import { createVoidStore } from './settlement/void-store.ts'
import { createSwitchStore } from './switches/store.ts'
import { fireSwitches } from './switches/switches.ts'

export interface Keeper {
  /** Stops matching, waits for the receipts of what is in flight, and releases every lease. */
  stop(): Promise<void>
}

/** Bound of the time until a market that is listed while the keeper runs gets its jobs. */
const MARKET_POLL_MS = 5000

function adaptersOf(
  config: Config,
  logger: Logger,
  db: Db,
  metrics: KeeperMetrics,
  clock: DatabaseClock,
  lanes: () => readonly RelayerLane[],
) {
  const { chainId, rpcUrl: url, rpcTimeoutMs: requestTimeoutMs, sendTimeoutMs } = config
  const chain = createChain({ url, chainId, requestTimeoutMs, sendTimeoutMs })
  const policy = config.delivery
  const watch = createHeadWatch({ chain, clock, metrics, logger, policy })
  const { lowBalance } = config
  const balances = () => watchBalances({ chain, clock, metrics, logger, lowBalance, lanes })
  return {
    ...{ chain, policy, clock, metrics, logger, watch, balances },
    fee: () => watch.fee(),
    headTime: () => watch.headTime(),
    calls: createCalls(config.gas),
    killPoint: killAt(config.killAt),
    leases: createLeases(db, `${hostname()}-${process.pid}-${randomUUID()}`, config.leaseMs),
    relayers: createRelayerStore(db),
    voids: createVoidStore(db),
    leaseMs: config.leaseMs,
    maxInFlight: config.maxInFlight,
    confirmations: config.confirmations,
  }
}

type Adapters = ReturnType<typeof adaptersOf>

function signerOf({ relayerKeys, chainId }: Config, name: string): { signer: Signer; lane: RelayerLane } {
  const key = relayerKeys.get(name)
  if (key === undefined)
    throw new Error(`RELAYER_KEYS has no key for relayer lane ${name}: add ${name} to it`)
  const signer = createSigner(chainId, key)
  return { signer, lane: { name, relayer: signer.address, chainId } }
}

const intervalsOf = ({ auctionIntervalMs, sweepMs, pollMs }: Config): Intervals => ({
  auctionMs: auctionIntervalMs,
  sweepMs,
  pollMs,
})

function runMarket(
  config: Config,
  adapters: Adapters,
  db: Db,
  wakeUps: WakeUps,
  spec: MarketSpec,
): LeaderLoop[] {
  const { signer, lane } = signerOf(config, `m${spec.marketId}`)
  const intervals = intervalsOf(config)
  const store = createAuctionStore(db)
  const wake = (): void => wakeUps.send(spec.marketId)
  const settlement: LeaderLoop = runLeaderLoop(
    adapters,
    `settle:${lane.name}`,
    settlementJob(
      { ...adapters, signer, store: createSettlementStore(db) },
      { spec, lane, intervals },
      {
        onChange: () => settlement.wake(),
        listen: () => wakeUps.listen(spec.marketId, () => settlement.wake()),
      },
    ),
  )
  const auction = runLeaderLoop(
    adapters,
    `auction:${lane.name}`,
    auctionJob({ ...adapters, store, wake }, spec, intervals),
  )
  return [auction, settlement]
}

function runFaucet(config: Config, adapters: Adapters, db: Db): LeaderLoop[] {
  if (!config.relayerKeys.has('faucet')) return []
  const { signer, lane } = signerOf(config, 'faucet')
  const parts = {
    ...adapters,
    ...config.faucet,
    signer,
    store: createFaucetStore(db),
    token: config.collateralToken as Address,
  }
  const loop: LeaderLoop = runLeaderLoop(
    adapters,
    'faucet',
    faucetJob(parts, lane, intervalsOf(config), () => loop.wake()),
  )
  return [loop]
}

const runSwitches = (adapters: Adapters, db: Db): LeaderLoop =>
  runLeaderLoop(adapters, 'switches', {
    step: (fence) => fireSwitches({ ...adapters, switches: createSwitchStore(db) }, fence),
  })

/** Starts the jobs of every listed market, and of markets listed later. */
async function runMarkets(db: Db, run: (spec: MarketSpec) => LeaderLoop[], onError: (err: unknown) => void) {
  const loops: LeaderLoop[] = []
  const known = new Set<number>()
  const startNew = async (): Promise<void> => {
    for (const spec of await loadMarkets(db)) {
      if (known.has(spec.marketId)) continue
      known.add(spec.marketId)
      loops.push(...run(spec))
    }
  }
  await startNew()
  const timer = setInterval(() => void startNew().catch(onError), MARKET_POLL_MS)
  return { loops, stop: () => clearInterval(timer) }
}

const checksOf = (db: Db, { watch, clock }: Adapters): Check[] => [
  {
    name: 'database',
    check: async () => (await sql`select 1`.execute(db)).rows.length === 1 || 'no_response',
  },
  { name: 'chain', check: async () => watch.isResponding() || 'no_response' },
  { name: 'clock', check: async () => Math.abs(clock.skewMs()) <= MAX_SKEW_MS || 'clock_skewed' },
]

export async function compose(config: Config, logger: Logger): Promise<Keeper> {
  const db = createDb(
    createPool({ url: config.databaseUrl, connections: config.databaseConnections, name: 'keeper' }),
  )
  await checkSchema(db)
  const metrics = createMetrics()
  const wakeUps = createWakeUps(config, logger)
  const lanes = [...config.relayerKeys.keys()].map((name) => signerOf(config, name).lane)
  const clock = createDatabaseClock({ db, system: systemClock, metrics, logger })
  await clock.start()
  const adapters = adaptersOf(config, logger, db, metrics, clock, () => lanes)
  await adapters.watch.start()
  const balances = adapters.balances()
  const others = [...runFaucet(config, adapters, db), runSwitches(adapters, db)]
  const onError = (err: unknown): void => logger.error({ err }, 'starting the jobs of listed markets failed')
  const markets = await runMarkets(db, (spec) => runMarket(config, adapters, db, wakeUps, spec), onError)
  const readiness = createReadiness(checksOf(db, adapters), logger)
  const health = await serveHealth({ ...config.internal, registry: metrics.registry, readiness, logger })
  logger.info({ markets: markets.loops.length / 2, port: health.port }, 'keeper started')
  return {
    async stop() {
      markets.stop()
      await Promise.all([...markets.loops, ...others].map((loop) => loop.stop()))
      adapters.watch.stop()
      balances.stop()
      clock.stop()
      await wakeUps.close()
      await health.close()
      await db.destroy()
    },
  }
}
