/** Starts the jobs of every listed market, also of markets that are listed later or could not start before. */
import type { MarketSpec } from '../../domain/market/market.ts'
import type { Logger } from '../../service/logger.ts'
import type { LeaderLoop } from './leader-loop.ts'

export interface ListedMarketsPorts {
  readonly load: () => Promise<readonly MarketSpec[]>
  /** Starts the jobs of a market. Throws if it has no relayer key. */
  readonly run: (spec: MarketSpec) => readonly LeaderLoop[]
  readonly logger: Logger
  /** Bound of the time until a market that is listed, or gets its relayer key, while the keeper runs gets its jobs. */
  readonly pollMs: number
}

export interface ListedMarkets {
  /** False while a listed market has no jobs. */
  areStarted(): boolean
  count(): number
  stop(): Promise<void>
}

export async function runListedMarkets({
  load,
  run,
  logger,
  pollMs,
}: ListedMarketsPorts): Promise<ListedMarkets> {
  const started = new Map<number, readonly LeaderLoop[]>()
  let waiting = 0
  let isStopping = false

  function start(spec: MarketSpec): void {
    try {
      started.set(spec.marketId, run(spec))
    } catch (err) {
      waiting++
      logger.error({ market_id: spec.marketId, err }, 'starting the jobs of a market failed; will retry')
    }
  }

  async function startNew(): Promise<void> {
    const specs = await load()
    if (isStopping) return
    waiting = 0
    for (const spec of specs) if (!started.has(spec.marketId)) start(spec)
  }

  await startNew()
  const timer = setInterval(
    () =>
      void startNew().catch((err: unknown) =>
        logger.error({ err }, 'loading the markets failed; will retry'),
      ),
    pollMs,
  )
  return {
    areStarted: () => waiting === 0,
    count: () => started.size,
    async stop() {
      isStopping = true
      clearInterval(timer)
      await Promise.all([...started.values()].flat().map((loop) => loop.stop()))
    },
  }
}
