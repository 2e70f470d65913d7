/**
 * Ranks a market's candidates for deleveraging every ten seconds, for the rank that traders see (`adl_rank`). The engine computes its own ranks
 * when it deleverages.
 */
import type { Fence } from '../../db/fence.ts'
import { termsAt } from '../../domain/market/in-force.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import { fundingIndexAt } from '../../domain/prices/funding-state.ts'
import { rankSides } from '../../domain/risk/rank-lights.ts'
import type { Clock } from '../../service/clock.ts'
import type { Logger } from '../../service/logger.ts'
import { BackgroundTask } from '../background-task.ts'
import type { RankStore } from './ports.ts'

export interface RankPorts {
  readonly ranks: RankStore
  readonly clock: Clock
  readonly logger: Logger
}

export interface Ranks {
  /** Starts a ranking in the background if a ranking is due and none runs. */
  poll(fence: Fence): void
  /** Resolves when the running ranking has ended. */
  settled(): Promise<void>
}

const RANK_INTERVAL_MS = 10_000

async function rank({ ranks }: RankPorts, spec: MarketSpec, fence: Fence): Promise<void> {
  const { marketId } = spec
  const { now, oracle, funding, terms } = await ranks.load(spec)
  if (oracle === null) return
  const basis = { oracle, index: fundingIndexAt(funding, now) }
  const sides = rankSides(termsAt(spec, terms, now).spec, await ranks.positions(marketId), basis)
  await ranks.save(marketId, fence, sides, now)
}

export function createRanks(ports: RankPorts, spec: MarketSpec): Ranks {
  const { marketId } = spec
  const task = new BackgroundTask(ports, 'ranking for deleveraging failed; will retry', {
    market_id: marketId,
  })
  return {
    poll: (fence) => task.poll(RANK_INTERVAL_MS, () => rank(ports, spec, fence)),
    settled: () => task.settled(),
  }
}
