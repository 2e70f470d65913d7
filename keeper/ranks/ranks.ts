/**
 * Ranks a market's candidates for deleveraging every ten seconds, for the lights that traders see. It runs beside the auctions, under their
 * lease, on the matched positions that they keep in memory. Nothing is decided on it: a deleveraging ranks by itself.
 */
import type { Fence } from '../../db/fence.ts'
import { termsAt } from '../../domain/market/in-force.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import type { Position } from '../../domain/positions/position.ts'
import { fundingIndexAt } from '../../domain/prices/funding-state.ts'
import { rankSides, samplePositions } from '../../domain/risk/rank-lights.ts'
import type { Clock } from '../../service/clock.ts'
import type { Logger } from '../../service/logger.ts'
import type { MarketMemory } from '../auction/market-memory.ts'
import type { AuctionStore } from '../auction/ports.ts'
import { BackgroundTask } from '../background-task.ts'
import type { RankStore } from './ports.ts'

export interface RankPorts {
  readonly store: Pick<AuctionStore, 'snapshot'>
  readonly ranks: RankStore
  readonly clock: Clock
  readonly logger: Logger
}

export interface Ranks {
  /** Starts a ranking in the background if none runs and one is due. Does nothing until the auction has loaded the positions. */
  poll(fence: Fence): void
  /** Resolves when the running one has ended. */
  settled(): Promise<void>
}

const RANK_INTERVAL_MS = 10_000

async function rank(
  ports: RankPorts,
  spec: MarketSpec,
  fence: Fence,
  positions: readonly Position[],
): Promise<void> {
  const { now, report, funding, terms } = await ports.store.snapshot(spec)
  if (report === null) return
  const basis = { oracle: report.price, index: fundingIndexAt(funding, now) }
  await ports.ranks.save(
    spec.marketId,
    fence,
    rankSides(termsAt(spec, terms, now).spec, positions, basis),
    now,
  )
}

const taskOf = (ports: RankPorts, { marketId }: MarketSpec): BackgroundTask =>
  new BackgroundTask(ports, 'ranking for deleveraging failed; will retry', { market_id: marketId })

export function createRanks(ports: RankPorts, spec: MarketSpec, memory: Pick<MarketMemory, 'view'>): Ranks {
  const task = taskOf(ports, spec)
  return {
    poll(fence) {
      const { view } = memory
      if (view === null) return
      task.poll(RANK_INTERVAL_MS, () => rank(ports, spec, fence, samplePositions(view.positions)))
    },
    settled: () => task.settled(),
  }
}

/** Where no auction keeps the positions in memory. `load`: a sample of the market's matched positions. */
export function createStoredRanks(
  ports: RankPorts,
  spec: MarketSpec,
  load: () => Promise<readonly Position[]>,
): Ranks {
  const task = taskOf(ports, spec)
  return {
    poll: (fence) => task.poll(RANK_INTERVAL_MS, async () => rank(ports, spec, fence, await load())),
    settled: () => task.settled(),
  }
}
