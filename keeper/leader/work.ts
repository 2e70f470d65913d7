/** The three kinds of work that a keeper process does while it owns the lease for them. */
import type { MarketSpec } from '../../domain/market/market.ts'
import type { ReportRules } from '../../domain/prices/report.ts'
import { type AuctionPorts, createAuction } from '../auction/auction.ts'
import { createDesk } from '../auction/market-memory.ts'
import { type FaucetPorts, faucetRequests } from '../faucet/payouts.ts'
import { createMarks } from '../marks/marks.ts'
import type { Chain } from '../ports.ts'
import { Delivery, type DeliveryPorts } from '../relayer/delivery.ts'
import type { RelayerLane, RelayerStore } from '../relayer/ports.ts'
import { type SettlePorts, settleMarket } from '../settlement/settle-market.ts'
import type { OwnedWork } from './leader-loop.ts'

export interface Pauses {
  readonly auctionMs: number
  readonly sweepMs: number
  readonly pollMs: number
}

/**
 * A market's marks, triggers and auction, every `auctionMs`. The contract's rules for oracle reports are asked for when the lease is
 * taken up, beside the turns: while no node answers there is no batch, but what expires expires.
 */
export function auctionWork(
  ports: AuctionPorts & { chain: Chain },
  spec: MarketSpec,
  { auctionMs }: Pauses,
): OwnedWork {
  let market = openMarket(ports, spec, null)
  let isAsking = false
  async function askRules(): Promise<void> {
    if (isAsking) return
    isAsking = true
    try {
      market.desk.rules = { ...(await ports.chain.reportRules(spec.trader)), kind: spec.kind }
    } catch (err) {
      ports.logger.warn({ market_id: spec.marketId, err }, 'the rules for oracle reports could not be read')
    }
    isAsking = false
  }
  return {
    async start() {
      market = openMarket(ports, spec, market.desk.rules)
      void askRules()
    },
    async step(fence) {
      const started = ports.clock.now()
      if (market.desk.rules === null) void askRules()
      await market.marks.update(fence)
      await market.auction.turn(fence)
      return Math.max(0, started + auctionMs - ports.clock.now())
    },
    forget() {
      market.desk.view = null
    },
  }
}

function openMarket(ports: AuctionPorts, spec: MarketSpec, rules: ReportRules | null) {
  const desk = createDesk(rules)
  return { desk, auction: createAuction(ports, spec, desk), marks: createMarks(ports, spec, desk) }
}

export interface DeliveringPorts {
  readonly relayers: RelayerStore
  readonly chain: Chain
}

/** Makes the lane known and sends everything again that the chain has not mined. */
async function takeUp(
  { relayers, chain }: DeliveringPorts,
  lane: RelayerLane,
  delivery: Delivery,
): Promise<void> {
  await relayers.register(lane, await chain.transactionCount(lane.relayer))
  await delivery.recover()
}

export type SettlementParts = Omit<SettlePorts, 'delivery'> & Omit<DeliveryPorts, 'onNews'>

/** A market's settlement: woken by the queue, by answers of the node, and by the sweep. */
export function settlementWork(
  parts: SettlementParts,
  { spec, lane, pauses }: { readonly spec: MarketSpec; readonly lane: RelayerLane; readonly pauses: Pauses },
  wiring: { readonly onNews: () => void; readonly listen: () => { close(): Promise<void> } },
): OwnedWork {
  const delivery = new Delivery({ ...parts, onNews: wiring.onNews }, lane)
  let receiver: { close(): Promise<void> } | null = null
  const deafen = async (): Promise<void> => {
    const old = receiver
    receiver = null
    await old?.close()
  }
  return {
    async start() {
      await takeUp(parts, lane, delivery)
      receiver ??= wiring.listen()
    },
    async step(fence) {
      const progress = await settleMarket({ ...parts, delivery }, spec, lane, fence)
      return progress === 'waiting' ? pauses.pollMs : pauses.sweepMs
    },
    forget: () => void deafen(),
    async finish() {
      await deafen()
      await delivery.settled()
    },
  }
}

export type FaucetParts = Omit<FaucetPorts, 'delivery'> & Omit<DeliveryPorts, 'onNews'>

export function faucetWork(
  parts: FaucetParts,
  lane: RelayerLane,
  pauses: Pauses,
  onNews: () => void,
): OwnedWork {
  const delivery = new Delivery({ ...parts, onNews }, lane)
  return {
    start: () => takeUp(parts, lane, delivery),
    async step(fence) {
      const progress = await faucetRequests({ ...parts, delivery }, lane, fence)
      return progress === 'waiting' ? pauses.pollMs : Math.min(pauses.sweepMs, RELAY_SWEEP_MS)
    },
    finish: () => delivery.settled(),
  }
}

/** Somebody waits in front of a screen. */
const RELAY_SWEEP_MS = 200
