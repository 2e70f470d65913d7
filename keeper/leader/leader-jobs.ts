/** The leader jobs of a market's auction, a market's settlement, the faucet, relays, and the heartbeats and ends of all markets. */
import type { Fence } from '../../db/fence.ts'
import { reportRulesFor } from '../../domain/market/in-force.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import type { ReportRules } from '../../domain/prices/report.ts'
import type { Millis } from '../../domain/units.ts'
import { elapsed } from '../../service/clock.ts'
import { type AdjustmentPorts, Adjustments } from '../adjustments/adjustments.ts'
import { type AuctionPorts, createAuction } from '../auction/auction.ts'
import { createMarketMemory } from '../auction/market-memory.ts'
import { shareSnapshot } from '../auction/turn-snapshot.ts'
import { createEndings, type EndingPorts } from '../ending/ending.ts'
import { type FaucetPorts, payRequests } from '../faucet/payouts.ts'
import { createFigures, type FigurePorts } from '../figures/figures.ts'
import { createFunding, type FundingPorts } from '../funding/funding.ts'
import { createHeartbeats, type HeartbeatPorts } from '../heartbeat/heartbeat.ts'
import type { RulesInformer } from '../inform/rules.ts'
import { createLiquidations, type LiquidationPorts } from '../liquidation/liquidations.ts'
import { createMarks } from '../marks/marks.ts'
import type { Chain } from '../ports.ts'
import { createRanks, type RankPorts, type Ranks } from '../ranks/ranks.ts'
import { Delivery, type DeliveryPorts } from '../relayer/delivery.ts'
import type { LaneProgress, LaneWatch } from '../relayer/lane-watch.ts'
import type { RelayerLane, RelayerStore } from '../relayer/ports.ts'
import { createRelays, type RelayPorts } from '../relays/relays.ts'
import { recoverLane, type SettlePorts, settleMarket } from '../settlement/settle-market.ts'
import type { LeaderJob } from './leader-loop.ts'

export interface Intervals {
  readonly auctionMs: number
  /** Between two funding updates of a market. */
  readonly fundingMs: Millis
  readonly sweepMs: number
  readonly pollMs: number
}

export type AuctionJobPorts = AuctionPorts &
  LiquidationPorts &
  FundingPorts &
  RankPorts &
  FigurePorts & {
    readonly chain: Chain
    /** The start of a turn, this much after it was due. */
    readonly turnStarted: (lateMs: number) => void
  }

/**
 * A market's marks, triggers, liquidations and auction, every `auctionMs`, and its funding updates, ranks and figures beside them. The contract's rules for oracle
 * reports are fetched in the background: while no node responds, no batch is made, but orders still expire.
 */
export function auctionJob(
  ports: AuctionJobPorts,
  spec: MarketSpec,
  { auctionMs, fundingMs }: Intervals,
): LeaderJob {
  const turn = shareSnapshot(ports)
  let market = openMarket(turn.ports, spec, null)
  const funding = createFunding(ports, spec, fundingMs)
  const figures = createFigures(ports, spec)
  let dueAt: Millis | null = null
  let isFetching = false
  async function fetchRules(): Promise<void> {
    if (isFetching) return
    isFetching = true
    try {
      market.memory.rules = reportRulesFor(spec, await ports.chain.reportRules(spec.trader))
    } catch (err) {
      ports.logger.warn(
        { market_id: spec.marketId, err },
        'fetching the oracle report rules failed; will retry',
      )
    }
    isFetching = false
  }
  return {
    async start() {
      market = openMarket(turn.ports, spec, market.memory.rules)
      dueAt = null
      void fetchRules()
    },
    async step(fence) {
      const started = ports.clock.now()
      if (dueAt !== null) ports.turnStarted(Math.max(0, started - dueAt))
      const isFirst = dueAt === null
      if (market.memory.rules === null) void fetchRules()
      funding.poll(fence, market.memory.rules)
      market.ranks.poll(fence)
      figures.poll()
      turn.begin()
      await market.marks.update(fence)
      await market.liquidations.update(fence)
      await market.auction.run(fence)
      // The first turn loads the book; the one after it is not late because of that.
      dueAt = ((isFirst ? ports.clock.now() : started) + auctionMs) as Millis
      return Math.max(0, auctionMs - elapsed(ports.clock, started))
    },
    reset() {
      market.memory.view = null
      figures.reset()
    },
    async finish() {
      await Promise.all([funding.settled(), market.ranks.settled(), figures.settled()])
    },
  }
}

/** Ranks and figures for a market's readers, where the engine takes its turns. */
export function readersJob(
  ports: FigurePorts,
  spec: MarketSpec,
  ranks: Ranks,
  rules: Pick<RulesInformer, 'poll' | 'settled'>,
): LeaderJob {
  const figures = createFigures(ports, spec)
  return {
    async step(fence) {
      ranks.poll(fence)
      figures.poll()
      rules.poll()
      return READERS_POLL_MS
    },
    reset: () => figures.reset(),
    async finish() {
      await Promise.all([ranks.settled(), figures.settled(), rules.settled()])
    },
  }
}

const READERS_POLL_MS = 1_000

function openMarket(
  ports: AuctionPorts & LiquidationPorts & RankPorts,
  spec: MarketSpec,
  rules: ReportRules | null,
) {
  const memory = createMarketMemory(rules)
  return {
    memory,
    auction: createAuction(ports, spec, memory),
    marks: createMarks(ports, spec, memory),
    liquidations: createLiquidations(ports, spec, memory),
    ranks: createRanks(ports, spec, memory),
  }
}

export interface LanePorts {
  readonly relayers: RelayerStore
  readonly chain: Chain
  readonly laneWatch: Pick<LaneWatch, 'passed' | 'ended'>
}

type LaneJobPorts = LanePorts & Omit<DeliveryPorts, 'onChange' | 'onEnded'>

const createDelivery = (ports: LaneJobPorts, lane: RelayerLane, onChange: () => void): Delivery => {
  const onEnded = (succeeded: boolean): void => ports.laneWatch.ended(lane.name, succeeded)
  return new Delivery({ ...ports, onChange, onEnded }, lane)
}

/** Notes what a pass has left. Returns the pause before the next one. */
const pauseAfter = (
  { laneWatch }: LanePorts,
  { name }: RelayerLane,
  progress: LaneProgress,
  { waiting, idle }: Readonly<Record<LaneProgress, number>>,
): number => {
  laneWatch.passed(name, progress)
  return progress === 'waiting' ? waiting : idle
}

const register = async ({ relayers, chain }: LanePorts, lane: RelayerLane): Promise<void> =>
  relayers.register(lane, await chain.transactionCount(lane.relayer))

export type SettlementJobPorts = Omit<SettlePorts, 'delivery'> & LaneJobPorts

/** A market's settlement. It wakes on wake-ups, on responses of the node, and every `sweepMs`. */
export function settlementJob(
  ports: SettlementJobPorts,
  {
    spec,
    lane,
    intervals,
  }: { readonly spec: MarketSpec; readonly lane: RelayerLane; readonly intervals: Intervals },
  wiring: { readonly onChange: () => void; readonly listen: () => () => void },
): LeaderJob {
  const delivery = createDelivery(ports, lane, wiring.onChange)
  let endListening: (() => void) | null = null
  const stopListening = (): void => {
    endListening?.()
    endListening = null
  }
  return {
    async start(fence) {
      await register(ports, lane)
      await recoverLane({ ...ports, delivery }, spec, lane, fence)
      endListening ??= wiring.listen()
    },
    async step(fence) {
      const progress = await settleMarket({ ...ports, delivery }, spec, lane, fence)
      return pauseAfter(ports, lane, progress, { waiting: intervals.pollMs, idle: intervals.sweepMs })
    },
    reset: stopListening,
    async finish() {
      stopListening()
      await delivery.settled()
    },
  }
}

export type FaucetJobPorts = Omit<FaucetPorts, 'delivery'> & LaneJobPorts

/** Faucet payouts. It wakes when one is requested; the sweep finds those whose notification is lost. */
export function faucetJob(
  ports: FaucetJobPorts,
  lane: RelayerLane,
  intervals: Intervals,
  onChange: () => void,
): LeaderJob {
  const delivery = createDelivery(ports, lane, onChange)
  return {
    async start(fence) {
      await register(ports, lane)
      await delivery.recover(fence)
    },
    async step(fence) {
      const progress = await payRequests({ ...ports, delivery }, lane, fence)
      return pauseAfter(ports, lane, progress, { waiting: intervals.pollMs, idle: intervals.sweepMs })
    },
    finish: () => delivery.settled(),
  }
}

export type HeartbeatJobPorts = Omit<HeartbeatPorts, 'delivery'> & LaneJobPorts

/** The heartbeats of all markets. */
export function heartbeatJob(
  ports: HeartbeatJobPorts,
  lane: RelayerLane,
  intervals: Pick<Intervals, 'pollMs'>,
  onChange: () => void,
): LeaderJob {
  const delivery = createDelivery(ports, lane, onChange)
  const heartbeats = createHeartbeats({ ...ports, delivery }, lane)
  return {
    async start(fence) {
      await register(ports, lane)
      await delivery.recover(fence)
    },
    step: async (fence) => {
      const progress = await heartbeats.watch(fence)
      const waiting = Math.max(intervals.pollMs, FREEZE_POLL_MS / 2)
      return pauseAfter(ports, lane, progress, { waiting, idle: FREEZE_POLL_MS })
    },
    finish: () => delivery.settled(),
  }
}

export type AdjustmentJobPorts = Omit<AdjustmentPorts, 'delivery'> & LaneJobPorts

/** The adjustments of all markets. It wakes when one is prepared; the sweep finds those whose notification is lost. */
export function adjustmentJob(
  ports: AdjustmentJobPorts,
  lane: RelayerLane,
  intervals: Pick<Intervals, 'pollMs' | 'sweepMs'>,
  onChange: () => void,
): LeaderJob {
  const delivery = createDelivery(ports, lane, onChange)
  const adjustments = new Adjustments({ ...ports, delivery }, lane)
  return {
    async start(fence) {
      await register(ports, lane)
      await delivery.recover(fence)
    },
    async step(fence) {
      const progress = await adjustments.pass(fence)
      return pauseAfter(ports, lane, progress, { waiting: intervals.pollMs, idle: intervals.sweepMs })
    },
    finish: () => delivery.settled(),
  }
}

/** Ends what no lane ends. */
export const expiryJob = (expire: (fence: Fence) => Promise<void>): LeaderJob => ({
  async step(fence) {
    await expire(fence)
    return EXPIRY_SWEEP_MS
  },
})

const EXPIRY_SWEEP_MS = 1_000

export type EndingJobPorts = Omit<EndingPorts, 'delivery'> & LaneJobPorts

/** The ends of all markets. */
export function endingJob(
  ports: EndingJobPorts,
  lane: RelayerLane,
  intervals: Intervals,
  onChange: () => void,
): LeaderJob {
  const delivery = createDelivery(ports, lane, onChange)
  const pass = createEndings({ ...ports, delivery }, lane)
  return {
    async start(fence) {
      await register(ports, lane)
      await delivery.recover(fence)
    },
    async step(fence) {
      const progress = await pass(fence)
      return pauseAfter(ports, lane, progress, { waiting: intervals.pollMs, idle: ENDING_POLL_MS })
    },
    finish: () => delivery.settled(),
  }
}

export type RelayJobPorts = Omit<RelayPorts, 'delivery'> & LaneJobPorts

/** The relay of owners' requests. It wakes when one is accepted or changes; the sweep finds those whose notification is lost. */
export function relayJob(
  ports: RelayJobPorts,
  lane: RelayerLane,
  intervals: Intervals,
  onChange: () => void,
): LeaderJob {
  const delivery = createDelivery(ports, lane, onChange)
  const pass = createRelays({ ...ports, delivery }, lane)
  return {
    async start(fence) {
      await register(ports, lane)
      await delivery.recover(fence)
    },
    async step(fence) {
      const progress = await pass(fence)
      return pauseAfter(ports, lane, progress, { waiting: intervals.pollMs, idle: intervals.sweepMs })
    },
    finish: () => delivery.settled(),
  }
}

const ENDING_POLL_MS = 1_000

/** Bounds the time until a freeze request is answered. */
const FREEZE_POLL_MS = 1_000
