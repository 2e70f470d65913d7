/**
 * Figures of a market's risk and funding for the operator's monitoring, every ten seconds, beside the auctions of the process that owns the
 * market.
 */
import type { MarketSpec } from '../../domain/market/market.ts'
import { exposureOf } from '../../domain/positions/margin.ts'
import { FLAT } from '../../domain/positions/position.ts'
import { fractionOf, hasFunding } from '../../domain/prices/funding.ts'
import { type FundingIndex, ONE } from '../../domain/units.ts'
import type { Clock } from '../../service/clock.ts'
import type { Logger } from '../../service/logger.ts'
import { BackgroundTask } from '../background-task.ts'
import type { FigureMetrics, FigureStore, MarketFigures, StoredFigures } from './ports.ts'

export interface FigurePorts {
  readonly figures: FigureStore
  readonly metrics: FigureMetrics
  readonly clock: Clock
  readonly logger: Logger
}

export interface Figures {
  /** Starts a read in the background if none runs and one is due. */
  poll(): void
  /** The process does not own the market any more. */
  reset(): void
  /** Resolves when the running read has ended. */
  settled(): Promise<void>
}

const FIGURES_MS = 10_000

export function createFigures(ports: FigurePorts, spec: MarketSpec): Figures {
  const { metrics } = ports
  const failure = 'reading the figures of a market failed; will retry'
  const task = new BackgroundTask(ports, failure, { market_id: spec.marketId })
  /** Changes with each loss of the market, so that a read from before it is not published. */
  let ownership = 0

  async function read(owned: number): Promise<void> {
    const stored = await ports.figures.load(spec.marketId)
    if (owned === ownership) metrics.figures(spec.marketId, figuresOf(spec, stored))
  }

  return {
    poll: () => task.poll(FIGURES_MS, () => read(ownership)),
    reset() {
      ownership++
      task.makeDue()
      metrics.figures(spec.marketId, null)
    },
    settled: () => task.settled(),
  }
}

const toNumber = (wei: bigint): number => Number(wei) / 1e18

function figuresOf(spec: MarketSpec, stored: StoredFigures): MarketFigures {
  const { now, liquidations, backstop, deficit } = stored
  const { running, failing, oldestAt } = liquidations
  return {
    ...{ liquidationsRunning: running, liquidationsFailing: failing },
    oldestLiquidation: oldestAt === null ? 0 : (now - oldestAt) / 1000,
    backstopUse: backstopUse(spec, stored),
    backstopBalance: backstop === null ? null : toNumber(backstop.free),
    deficit: toNumber(deficit),
    ...fundingFigures(spec, stored),
  }
}

function backstopUse(spec: MarketSpec, { backstop, oracle }: StoredFigures): number | null {
  if (backstop === null || oracle === null || backstop.cap === 0n) return null
  const { notional } = exposureOf(spec, { ...FLAT, size: backstop.size }, 0n as FundingIndex, oracle)
  return Number(notional / ONE) / Number(backstop.cap)
}

function fundingFigures(
  spec: MarketSpec,
  { funding, oracle, now }: StoredFigures,
): Pick<MarketFigures, 'fundingRate' | 'fundingUpdatedAt' | 'fundingValidUntil'> {
  const { rate, validFrom, validUntil } = funding
  const hasUpdate = hasFunding(spec) && validUntil > 0
  const isValid = hasUpdate && now < validUntil && oracle !== null
  return {
    fundingRate: isValid ? toNumber(fractionOf(spec, rate, oracle)) : null,
    fundingUpdatedAt: hasUpdate ? validFrom / 1000 : null,
    fundingValidUntil: hasUpdate ? validUntil / 1000 : null,
  }
}
