/** Shares the markets with other keepers: announces this one, and decides which markets' leases it acquires, keeps and gives back. */
import type { MarketId } from '../../domain/units.ts'
import type { Clock } from '../../service/clock.ts'
import type { Logger } from '../../service/logger.ts'
import {
  type KeeperLoad,
  type KeeperStatus,
  NO_LOAD,
  nextLoad,
  wantedMarkets,
} from '../../service/market-shares.ts'
import { Sleeper } from './leader-loop.ts'

/** What all keepers announce, and which of them owns which market's auction. */
export interface SharesView {
  readonly keepers: readonly KeeperStatus[]
  readonly owners: ReadonlyMap<number, string>
}

export interface SharesStore {
  announce(status: KeeperStatus): Promise<void>
  read(): Promise<SharesView>
  withdraw(id: string): Promise<void>
}

export interface ShareMetrics {
  turnStarted(lateMs: number): void
  marketsOwned(count: number): void
  marketsGivenBack(count: number): void
}

export interface MarketSharesPorts {
  readonly shares: SharesStore
  readonly clock: Clock
  readonly logger: Logger
  readonly metrics: ShareMetrics
  /** The owner of this process's leases. */
  readonly owner: string
  readonly passMs: number
}

export interface MarketShares {
  /** `wake` is called when it changes whether this keeper wants the market. */
  add(marketId: MarketId, wake: () => void): void
  isWanted(marketId: MarketId): boolean
  /** Whether this keeper may settle the market: if it wants the market, or if a process owns the auction that announces nothing. */
  isSettler(marketId: MarketId): boolean
  /** The start of a turn of a market, this much after it was due. */
  turnStarted(lateMs: number): void
  /** Withdraws this keeper, so that the others acquire its markets as soon as their leases are released. */
  stop(): Promise<void>
}

/** A keeper gives back a twentieth of the markets at once: half of them take ten passes. */
const HAND_OVERS = 1 / 20

export function runMarketShares(ports: MarketSharesPorts): MarketShares {
  const { shares, clock, logger, metrics, owner, passMs } = ports
  const wakes = new Map<number, () => void>()
  const late = new MeanLateness()
  let wanted: ReadonlySet<number> = new Set()
  let load: KeeperLoad = NO_LOAD
  let view: SharesView = { keepers: [], owners: new Map() }
  let isStopping = false
  const sleeper = new Sleeper()

  function status(): KeeperStatus {
    const owned = [...view.owners.values()].filter((id) => id === owner).length
    const canGive = view.keepers.some(({ id, isLate }) => id !== owner && !isLate)
    const input = { now: clock.now(), sampleMs: late.take(), owned, markets: wakes.size, canGive }
    load = nextLoad(load, input)
    return { id: owner, capacity: load.capacity, isLate: load.isLate, markets: new Set(wakes.keys()) }
  }

  async function pass(): Promise<void> {
    await shares.announce(status())
    view = await shares.read()
    const owners = new Map<number, string | null>([...wakes.keys()].map((market) => [market, null]))
    for (const [market, id] of view.owners) owners.set(market, id)
    const handOvers = Math.max(1, Math.ceil(owners.size * HAND_OVERS))
    const next = wantedMarkets({ self: owner, keepers: view.keepers, owners, handOvers })
    const before = wanted
    wanted = next
    const changed = [...wakes.keys()].filter((market) => before.has(market) !== next.has(market))
    const isOwned = (market: number): boolean => view.owners.get(market) === owner
    metrics.marketsOwned([...wakes.keys()].filter(isOwned).length)
    metrics.marketsGivenBack(changed.filter((market) => isOwned(market) && !next.has(market)).length)
    for (const market of changed) wakes.get(market)?.()
  }

  async function run(): Promise<void> {
    while (!isStopping) {
      await pass().catch((err: unknown) => logger.warn({ err }, 'sharing the markets failed; will retry'))
      if (isStopping) return
      await sleeper.sleep(passMs)
    }
  }

  const running = run()
  return {
    add(marketId, wake) {
      wakes.set(marketId, wake)
      sleeper.wake()
    },
    isWanted: (marketId) => wanted.has(marketId),
    isSettler(marketId) {
      const auctioneer = view.owners.get(marketId)
      return (
        wanted.has(marketId) ||
        !(auctioneer === undefined || view.keepers.some(({ id }) => id === auctioneer))
      )
    },
    turnStarted(lateMs) {
      late.add(lateMs)
      metrics.turnStarted(lateMs)
    },
    async stop() {
      isStopping = true
      sleeper.wake()
      await running
      await shares
        .withdraw(owner)
        .catch((err: unknown) =>
          logger.warn({ err }, 'withdrawing from the keepers failed; it expires by itself'),
        )
    },
  }
}

class MeanLateness {
  #sum = 0
  #count = 0

  add(ms: number): void {
    this.#sum += ms
    this.#count++
  }

  /** The mean since the last call; null without a turn. */
  take(): number | null {
    const mean = this.#count === 0 ? null : this.#sum / this.#count
    this.#sum = 0
    this.#count = 0
    return mean
  }
}
