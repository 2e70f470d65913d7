/** The leader jobs of a market's readers, a market's settlement, the faucet, relays, and the heartbeats and ends of all markets. */
import type { Fence } from '../../db/fence.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import { type AdjustmentPorts, Adjustments } from '../adjustments/adjustments.ts'
import { createEndings, type EndingPorts } from '../ending/ending.ts'
import { type FaucetPorts, payRequests } from '../faucet/payouts.ts'
import { createFigures, type FigurePorts } from '../figures/figures.ts'
import { createHeartbeats, type HeartbeatPorts } from '../heartbeat/heartbeat.ts'
import type { RulesInformer } from '../inform/rules.ts'
import type { Chain } from '../ports.ts'
import type { Ranks } from '../ranks/ranks.ts'
import { Delivery, type DeliveryPorts } from '../relayer/delivery.ts'
import type { LaneProgress, LaneWatch } from '../relayer/lane-watch.ts'
import type { RelayerLane, RelayerStore } from '../relayer/ports.ts'
import { createRelays, type RelayPorts } from '../relays/relays.ts'
import { recoverLane, type SettlePorts, settleMarket } from '../settlement/settle-market.ts'
import type { LaneJobs } from './lane-jobs.ts'
import type { LeaderJob } from './leader-loop.ts'

export interface Intervals {
  readonly sweepMs: number
  readonly pollMs: number
}

/** Ranks and figures for a market's readers, and the contract's rules for the engine, which takes the market's turns. */
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

export interface LanePorts {
  readonly relayers: RelayerStore
  readonly chain: Chain
  readonly laneWatch: Pick<LaneWatch, 'passed' | 'ended'>
  readonly laneJobs: Pick<LaneJobs, 'passed'>
}

type LaneJobPorts = LanePorts & Omit<DeliveryPorts, 'onChange' | 'onEnded'>

const createDelivery = (ports: LaneJobPorts, lane: RelayerLane, onChange: () => void): Delivery => {
  const onEnded = (succeeded: boolean): void => ports.laneWatch.ended(lane.name, succeeded)
  return new Delivery({ ...ports, onChange, onEnded }, lane)
}

/** Records the rest of a pass. Returns the pause before the next pass. */
const pauseAfter = (
  { laneWatch, laneJobs }: LanePorts,
  { name }: RelayerLane,
  progress: LaneProgress,
  { waiting, idle }: Readonly<Record<LaneProgress, number>>,
): number => {
  laneWatch.passed(name, progress)
  laneJobs.passed(name, progress)
  return progress === 'waiting' ? waiting : idle
}

const register = async ({ relayers, chain }: LanePorts, lane: RelayerLane): Promise<void> =>
  relayers.register(lane, await chain.transactionCount(lane.relayer))

export type SettlementJobPorts = Omit<SettlePorts, 'delivery'> & LaneJobPorts

/** A market's settlement. It wakes on notifications and jobs, on responses of the node, and every `sweepMs`. */
export function settlementJob(
  ports: SettlementJobPorts,
  {
    spec,
    lane,
    intervals,
  }: { readonly spec: MarketSpec; readonly lane: RelayerLane; readonly intervals: Intervals },
  onChange: () => void,
): LeaderJob {
  const delivery = createDelivery(ports, lane, onChange)
  return {
    async start(fence) {
      await register(ports, lane)
      await recoverLane({ ...ports, delivery }, spec, lane, fence)
    },
    async step(fence) {
      const progress = await settleMarket({ ...ports, delivery }, spec, lane, fence)
      return pauseAfter(ports, lane, progress, { waiting: intervals.pollMs, idle: intervals.sweepMs })
    },
    finish: () => delivery.settled(),
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
